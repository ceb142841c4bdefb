package page

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// answers are one server's answers to a browser.
type answers struct {
	port    string
	mu      sync.Mutex
	changed *sync.Cond
	// asked has requests as "METHOD kind of path". status has the answers' statuses, even if the
	// browser keeps them from the site.
	asked  map[network.RequestID]string
	status map[network.RequestID]int64
}

func answersOf(port string) *answers {
	a := &answers{port: port, asked: map[network.RequestID]string{}, status: map[network.RequestID]int64{}}
	a.changed = sync.NewCond(&a.mu)
	return a
}

// listen is a handler of a browser's events.
func (a *answers) listen(event any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if u, err := url.Parse(e.Request.URL); err == nil && u.Port() == a.port && !strings.HasPrefix(u.Path, "/assets/") { // which are for everyone
			a.asked[e.RequestID] = fmt.Sprintf("%s %s of %s by %s", e.Request.Method, e.Type, u, e.DocumentURL)
		}
	case *network.EventResponseReceivedExtraInfo:
		a.status[e.RequestID] = e.StatusCode
	}
	a.changed.Broadcast()
}

// all waits until each request since the last call is answered, and returns the statuses by
// request.
func (a *answers) all(w *window) map[string]int64 {
	w.t.Helper()
	ctx, cancel := w.untilLate()
	defer cancel()
	a.mu.Lock()
	defer a.mu.Unlock()
	defer context.AfterFunc(ctx, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.changed.Broadcast()
	})()

	found := map[string]int64{}
	for id, what := range a.asked {
		for a.status[id] == 0 {
			if ctx.Err() != nil {
				w.t.Fatalf("%s was not answered", what)
			}
			a.changed.Wait()
		}
		found[fmt.Sprintf("%s (%s)", what, id)] = a.status[id]
	}

	clear(a.asked)
	return found
}

// attack is the script of another site's page that knows the address and the path of this one. It
// returns everything that it got.
const attack = `(async (base) => {
	const got = [];
	const asked = async (init, path) => {
		try {
			const answer = await fetch(base + path, { credentials: "include", ...init });
			got.push(answer.type + " " + (await answer.text()));
		} catch { /* refused */ }
	};
	const loaded = (tag, attributes) => new Promise((done) => {
		const e = document.createElement(tag);
		e.onload = done;
		e.onerror = done;
		Object.assign(e, attributes);
		document.body.append(e);
	});
	await asked({}, "packages");
	await asked({ mode: "no-cors" }, "packages");
	await asked({ mode: "no-cors", method: "POST", body: new URLSearchParams() }, "packages/shop/web/pause");
	await new Promise((done) => {
		const stream = new EventSource(base + "packages/stream", { withCredentials: true });
		const end = () => { stream.close(); done(); };
		stream.addEventListener("fragment", (e) => { got.push(e.data); end(); });
		stream.onopen = () => got.push("a stream");
		stream.onerror = end;
	});
	await loaded("script", { src: base + "packages" });
	await loaded("img", { src: base + "packages" });
	await loaded("iframe", { src: base + "packages" });
	await loaded("iframe", { src: new URL("/", base).href });
	await loaded("iframe", { name: "target" });
	const form = document.createElement("form");
	Object.assign(form, { method: "post", action: base + "packages/shop/web/pause", target: "target" });
	document.body.append(form);
	const sent = new Promise((done) => { document.querySelector("iframe[name=target]").onload = done; });
	form.submit();
	await sent;
	for (const frame of document.querySelectorAll("iframe")) {
		try { got.push(frame.contentDocument.body.textContent); } catch { /* of another origin */ }
	}
	return got.join("\n");
})(%q)`

// Another site in the signed-in browser that knows the address and the path of the page gets no
// data and changes nothing. It tries another port of this machine, which cookies are sent to, its
// own name, and a name that leads to this machine. Pages that the user opens are answered as
// before.
func TestOtherSites(t *testing.T) {
	s := newAPIServer(t)
	s.put(shop()...)
	browser := newBrowser(t, chromedp.Flag("host-resolver-rules", "MAP *.example 127.0.0.1"), chromedp.Flag("no-proxy-server", true))
	w := openIn(browser, t, s)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<!doctype html><title>Other</title><body>"))
	}))
	t.Cleanup(other.Close)
	here, err := url.Parse(w.base)
	if err != nil {
		t.Fatal(err)
	}
	seen := answersOf(here.Port())
	chromedp.ListenTarget(w.Context, seen.listen)
	w.do(network.Enable())

	refused := 0
	check := func(name, got string, want int64) {
		t.Helper()
		for _, secret := range []string{"payments", "ledger-db", "stream", "Code of the terminal"} {
			if strings.Contains(got, secret) {
				t.Errorf("%s has got %q: %s", name, secret, got)
			}
		}
		for request, status := range seen.all(w) {
			if refused++; status != want {
				t.Errorf("%s: %s was answered with %d, not %d", name, request, status, want)
			}
		}
	}
	rebound := "http://rebound.example:" + here.Port()
	for _, site := range []string{other.URL, strings.Replace(other.URL, "127.0.0.1", "evil.example", 1)} {
		var got string
		w.do(chromedp.Navigate(site), chromedp.Evaluate(fmt.Sprintf(attack, w.base), &got, awaited))
		check(site, got, http.StatusForbidden)
		w.do(chromedp.Evaluate(fmt.Sprintf(attack, rebound+here.Path), &got, awaited))
		check(site+" by a name that leads here", got, http.StatusMisdirectedRequest)
		w.do(chromedp.Evaluate(fmt.Sprintf("void (location.href = %q)", w.base+"packages"), nil))
		w.until(`document.body.textContent.includes("This request comes from another site")`)
		check("a link of "+site, w.eval("document.body.textContent"), http.StatusForbidden)
	}
	for _, path := range []string{"/", here.Path + "packages", here.Path + "packages/stream"} {
		w.do(chromedp.Navigate(rebound + path))
		check("a name that leads here", w.eval("document.body.textContent"), http.StatusMisdirectedRequest)
	}
	if refused != 41 { // 9 of each of four attacks, a link of each of two sites, and three pages by a name that leads here
		t.Errorf("%d requests were refused by the page", refused)
	}
	if written := s.writes(); len(written) > 0 {
		t.Errorf("other sites have written: %v", written)
	}
	w.to("packages/shop/web", "#phases .track")
}
