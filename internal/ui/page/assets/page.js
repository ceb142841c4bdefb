// Updates pages with fragments from the server. Pages are complete without this script.

const body = document.body;
const live = document.getElementById("live");
const news = document.getElementById("news");

enter();
copying();
keys();
if (body.dataset.stream) follow(body.dataset.stream);

// The code follows the # in the address. It is removed from the address and the history.
function enter() {
  const form = document.getElementById("enter");
  const code = location.hash.slice(1);
  if (!form || !code) return;
  history.replaceState(null, "", "/");
  form.elements.code.value = code;
  form.requestSubmit();
}

function copying() {
  if (!navigator.clipboard) return;
  reveal(document);
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    await navigator.clipboard.writeText(button.dataset.copy);
    button.classList.add("done");
    say("Copied " + button.dataset.copy);
    setTimeout(() => button.classList.remove("done"), 1600);
  });
}

function reveal(root) {
  if (!navigator.clipboard) return;
  for (const button of root.querySelectorAll("[data-copy][hidden]")) button.hidden = false;
}

// "/" focuses the search; "j" and "k" move along the rows.
function keys() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, select, textarea")) return;
    const search = document.querySelector("[data-slash]");
    if (event.key === "/" && search) {
      event.preventDefault();
      search.focus();
      search.select();
    } else if (event.key === "j" || event.key === "k") {
      const links = [...document.querySelectorAll("[data-key] a")];
      const at = links.indexOf(document.activeElement);
      const to = links[event.key === "j" ? Math.min(at + 1, links.length - 1) : Math.max(at - 1, 0)];
      if (to) to.focus();
    }
  });
}

// A tab has one stream while it is visible.
function follow(address) {
  let source;
  const open = () => {
    if (source || document.hidden) return;
    const url = new URL(address, location.origin);
    for (const part of document.querySelectorAll("[data-digest]")) url.searchParams.append("have", part.id + ":" + part.dataset.digest);
    source = new EventSource(url);
    source.addEventListener("open", () => state("good", "live"));
    source.addEventListener("fragment", (event) => swap(JSON.parse(event.data)));
    source.addEventListener("gone", () => location.reload());
    source.addEventListener("error", () => {
      const ended = source.readyState === EventSource.CLOSED;
      close();
      state("bad", ended ? "not connected" : "connection lost");
      setTimeout(open, 3000);
    });
  };
  const close = () => {
    if (source) source.close();
    source = undefined;
  };
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  addEventListener("pagehide", close);
  addEventListener("pageshow", open);
  open();
}

function state(tone, word) {
  if (!live) return;
  live.hidden = false;
  live.className = "live " + tone;
  const text = live.querySelector(".word");
  if (text.textContent !== word) text.textContent = word;
}

function say(text) {
  if (news) news.textContent = text;
}

// swap replaces a fragment. It keeps open details and the focus, announces elements with another state, and animates those
// with another position or length.
function swap({ id, digest, html }) {
  const part = document.getElementById(id);
  if (!part) return;
  const before = states(part);
  const open = [...part.querySelectorAll("details[open][id]")].map((d) => d.id);
  const drawn = shapes(part);
  const focus = part.contains(document.activeElement) ? pathOf(document.activeElement) : null;
  part.replaceChildren(...new DOMParser().parseFromString(html, "text/html").body.childNodes);
  part.dataset.digest = digest;
  for (const name of open) document.getElementById(name)?.setAttribute("open", "");
  reveal(part);
  move(part, drawn);
  if (focus) find(part, focus)?.focus({ preventScroll: true });
  const changed = [];
  for (const [key, element] of elements(part)) {
    const was = before.get(key);
    if (was === element.dataset.state || (was === undefined && before.size === 0)) continue;
    element.classList.add("changed");
    changed.push(key + ": " + element.dataset.state);
  }
  if (changed.length) say(changed.length > 3 ? changed.length + " changes" : changed.join(", "));
}

// shapes are the positions of rows and the lengths of gauges.
function shapes(part) {
  return new Map(elements(part).map(([key, e]) => [key, { top: e.getBoundingClientRect().top, done: e.querySelector(".done")?.getAttribute("width") }]));
}

function move(part, before) {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  for (const [key, e] of elements(part)) {
    const was = before.get(key);
    const by = was ? was.top - e.getBoundingClientRect().top : 0;
    if (Math.abs(by) > 4) e.animate([{ transform: `translateY(${by}px)` }, { transform: "none" }], { duration: 420, easing: "cubic-bezier(.2, .8, .2, 1)" });
    const gauge = e.querySelector(".done");
    if (gauge && was?.done && was.done !== gauge.getAttribute("width")) gauge.animate([{ width: was.done + "px" }, { width: gauge.getAttribute("width") + "px" }], { duration: 600, easing: "ease-out" });
  }
}

function elements(part) {
  return [...part.querySelectorAll("[data-key]")].map((e) => [e.dataset.key, e]);
}

function states(part) {
  return new Map(elements(part).map(([key, e]) => [key, e.dataset.state]));
}

function pathOf(element) {
  const row = element.closest("[data-key]");
  return { id: element.id, key: row?.dataset.key, href: element.getAttribute("href"), copy: element.dataset.copy, summary: element.matches("summary") && element.parentElement.id };
}

function find(part, { id, key, href, copy, summary }) {
  if (id) return document.getElementById(id);
  if (summary) return document.getElementById(summary)?.querySelector("summary");
  const root = (key && elements(part).find(([k]) => k === key)?.[1]) || part;
  return [...root.querySelectorAll("a, button")].find((e) => (copy ? e.dataset.copy === copy : e.getAttribute("href") === href));
}
