package page

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

var plugin = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "lockstep-page-")
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "kubectl-package")
	_, err = run("../..", "go", "build", "-ldflags=-w", "-o", file, "./cmd/kubectl-package")
	return file, err
})

func TestMain(m *testing.M) {
	code := m.Run()
	if file, err := plugin(); err == nil {
		_ = os.RemoveAll(filepath.Dir(file))
	}
	os.Exit(code)
}

// window is a browser tab that shows the page.
type window struct {
	context.Context
	t *testing.T
	// base is the address of the pages, process the program that serves them.
	base    string
	process *os.Process
}

// serve starts the page of a cluster and returns the address that opens it.
func serve(t *testing.T, kubeconfig string, flags ...string) (address string, process *os.Process) {
	t.Helper()
	file, err := plugin()
	if err != nil {
		t.Fatal(err)
	}

	cmd := exec.CommandContext(t.Context(), file, append([]string{"ui"}, flags...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}

	said := &output{}
	cmd.Stderr = said
	var copied sync.WaitGroup
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		_ = cmd.Cancel()
		_ = cmd.Wait()
		copied.Wait()
		if t.Failed() {
			t.Log(said.String())
		}
	})

	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	if err != nil {
		t.Fatalf("no address: %v, %s", err, said.String())
	}

	copied.Go(func() { _, _ = io.Copy(io.Discard, lines) })
	return strings.TrimSpace(line), cmd.Process
}

// output is the output of a running program.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(text)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// open shows the list of a cluster in a browser.
func open(t *testing.T, s *apiServer, flags ...string) *window {
	t.Helper()
	return openIn(newBrowser(t), t, s, flags...)
}

// openIn is open in a running browser.
func openIn(browser context.Context, t *testing.T, s *apiServer, flags ...string) *window {
	t.Helper()
	address, process := serve(t, s.kubeconfig(t), flags...)
	w := &window{Context: browser, t: t, process: process}
	w.size(1280, 860)
	w.do(chromedp.Navigate(address), chromedp.WaitVisible("table.list, .empty", chromedp.ByQuery))
	var at string
	w.do(chromedp.Location(&at))
	w.base = strings.TrimSuffix(at, "packages")
	return w
}

// untilLate ends shortly before the time limit of the whole test, so that it can report the
// expected state. There is no other limit.
func (w *window) untilLate() (context.Context, context.CancelFunc) {
	if deadline, limited := w.t.Deadline(); limited {
		return context.WithDeadline(w.Context, deadline.Add(-20*time.Second))
	}
	return context.WithCancel(w.Context)
}

// do runs actions.
func (w *window) do(actions ...chromedp.Action) {
	w.t.Helper()
	ctx, cancel := w.untilLate()
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		var shown string
		late, end := context.WithTimeout(w.Context, 10*time.Second)
		defer end()
		_ = chromedp.Run(late, chromedp.Evaluate("document.body.innerText", &shown))
		w.t.Fatalf("%v; shown:\n%s", err, shown)
	}
}

func (w *window) size(width, height int64) {
	w.t.Helper()
	w.do(emulation.SetDeviceMetricsOverride(width, height, 1, false), emulation.SetScrollbarsHidden(true))
}

func (w *window) dark(is bool) {
	w.t.Helper()
	scheme := "light"
	if is {
		scheme = "dark"
	}
	w.do(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
}

// to opens a page and waits for an element of it.
func (w *window) to(path, element string) {
	w.t.Helper()
	w.do(chromedp.Navigate(w.base+path), chromedp.WaitVisible(element, chromedp.ByQuery))
}

// eval returns the result of a script as text.
func (w *window) eval(script string) (said string) {
	w.t.Helper()
	w.do(chromedp.Evaluate("String("+script+")", &said))
	return said
}

// until waits until a script returns true, across page changes: the page itself waits, and the
// script starts again after the page was left.
func (w *window) until(script string) {
	w.t.Helper()
	ctx, cancel := w.untilLate()
	defer cancel()
	waiting := fmt.Sprintf(`new Promise((seen) => {
		const look = () => {
			try { if (document.readyState === "complete" && (%s)) return seen(true); } catch { /* the page is not whole yet */ }
			setTimeout(look, 10);
		};
		look();
	})`, script)

	for said := false; !said; {
		if _ = chromedp.Run(ctx, chromedp.Evaluate(waiting, &said, awaited)); ctx.Err() != nil { // it fails while a page is left
			w.t.Fatalf("it never was: %s; shown at %s:\n%s", script, w.eval("location"), w.eval("document.body.innerText.slice(0, 4000)"))
		}
	}
}

// pages are all kinds of pages, with an element that shows that they are drawn.
var pages = map[string]string{
	"packages":                               "table.list",
	"packages?q=nothing-fits":                ".empty",
	"packages/payments/api":                  "#phases .track",
	"packages/payments/api/diff?from=7&to=8": ".diff",
	"packages/shop/web":                      "#phases .track",
	"packages/shop/search":                   "#phases .track",
	"clusterpackages/ingress":                "#phases .track",
	"none":                                   ".lead",
}

// violation is a violation that axe found.
type violation struct {
	ID, Impact, Help string
	Nodes            []struct {
		Target         []any
		FailureSummary string
	}
}

// axe finds no violation on any page, light and dark, wide and narrow.
func TestAccessible(t *testing.T) {
	s := newAPIServer(t)
	s.put(shop()...)
	w := open(t, s)
	checked := 0
	for _, look := range []struct {
		name  string
		dark  bool
		width int64
	}{{"light, wide", false, 1280}, {"dark, wide", true, 1280}, {"light, narrow", false, 360}, {"dark, narrow", true, 360}} {
		w.size(look.width, 860)
		w.dark(look.dark)
		for path, element := range pages {
			w.to(path, element)
			w.accessible(path + ", " + look.name)
			checked++
		}
		site := strings.TrimRight(w.base, "/")
		w.do(chromedp.Navigate(site[:strings.LastIndex(site, "/")+1]), chromedp.WaitVisible("#code", chromedp.ByQuery))
		w.accessible("the form for the code, " + look.name)
		checked++
	}

	t.Logf("axe-core %s looked at %d pages", axeVersion, checked)
}

// accessible reports axe's violations on the present page, and a page that is wider than the
// window.
func (w *window) accessible(name string) {
	w.t.Helper()
	var text string
	w.do(chromedp.Evaluate(need(w.t).axe+";0", nil), chromedp.Evaluate(`axe.run(document, {resultTypes: ["violations"]}).then((r) => JSON.stringify({found: r.violations, passed: r.passes.length}))`, &text, awaited))
	var said struct {
		Found  []violation
		Passed int
	}

	if err := json.Unmarshal([]byte(text), &said); err != nil {
		w.t.Fatal(err)
	}
	if said.Passed < 10 {
		w.t.Errorf("%s: only %d rules apply", name, said.Passed)
	}

	for _, v := range said.Found {
		for _, n := range v.Nodes[:min(len(v.Nodes), 3)] {
			w.t.Errorf("%s: %s (%s): %v: %s", name, v.ID, v.Impact, n.Target, n.FailureSummary)
		}
	}

	if scrolls := w.eval("document.documentElement.scrollWidth > innerWidth + 1"); scrolls == "true" {
		w.t.Errorf("%s: the page is wider than the window", name)
	}
}

// The keyboard alone leads from the list to the cause and to the changes.
func TestKeyboard(t *testing.T) {
	s := newAPIServer(t)
	s.put(shop()...)
	w := open(t, s)
	press := func(keys ...string) {
		for _, key := range keys {
			w.do(chromedp.KeyEvent(key))
		}
	}
	focused := func() string { return w.eval("document.activeElement.textContent") }

	press(kb.Tab)
	if got := focused(); got != "Skip to content" {
		t.Errorf("the first stop is %q", got)
	}
	// The browser inserts no character for a key that the page handles.
	w.do(input.DispatchKeyEvent(input.KeyDown).WithKey("/").WithText("/"), input.DispatchKeyEvent(input.KeyUp).WithKey("/"))
	w.until(`document.activeElement.id === "q"`)
	press("payments", kb.Enter)
	w.until(`location.search.includes("q=payments") && document.querySelector("table.list") !== null`)
	press("j")
	if got := focused(); got != "api" {
		t.Fatalf("j leads to %q, and not to what is broken", got)
	}
	press("j", "k", kb.Enter)
	w.until(`location.pathname.endsWith("/packages/payments/api") && (document.querySelector("#cause .why")?.textContent ?? "").includes("database migration 42 has not run")`)
	for range 60 {
		press(kb.Tab)
		if focused() == "What changed" {
			break
		}
	}
	if w.eval(`getComputedStyle(document.activeElement).outlineStyle`) != "solid" {
		t.Error("the focus is not seen")
	}
	press(kb.Enter)
	w.until(`location.pathname.endsWith("/diff") && document.querySelector(".diff") !== null`)
	if text := w.eval(`document.querySelector(".diff").textContent`); !strings.Contains(text, "Deployment") {
		t.Errorf("what changed: %s", text)
	}
	if written := s.writes(); len(written) > 0 {
		t.Errorf("the page has written: %v", written)
	}
}

// Without scripts the pages are the same, and are entered by the form.
func TestWithoutScript(t *testing.T) {
	s := newAPIServer(t)
	s.put(shop()...)
	browser := newBrowser(t)
	address, _ := serve(t, s.kubeconfig(t))
	w := &window{Context: browser, t: t}
	site, code, _ := strings.Cut(address, "#")
	w.do(emulation.SetScriptExecutionDisabled(true), chromedp.Navigate(site), chromedp.WaitVisible("#code", chromedp.ByQuery),
		chromedp.SendKeys("#code", code+kb.Enter, chromedp.ByQuery), chromedp.WaitVisible("table.list", chromedp.ByQuery),
		chromedp.SendKeys("#q", "payments"+kb.Enter, chromedp.ByQuery), chromedp.WaitVisible(`.filter input[value="payments"]`, chromedp.ByQuery),
		chromedp.Click(`//a[text()="api"]`), chromedp.WaitVisible(`//*[@class="why"][contains(., "database migration 42 has not run")]`),
		chromedp.Click(`//a[text()="What changed"]`), chromedp.WaitVisible(".diff", chromedp.ByQuery),
	)

	var buttons []string
	w.do(chromedp.Evaluate(`[...document.querySelectorAll("button")].filter((b) => b.checkVisibility() && b.type != "submit").map((b) => b.textContent)`, &buttons))
	if len(buttons) > 0 {
		t.Errorf("buttons that do nothing without script: %v", buttons)
	}
}

// Markup in a cluster's texts does not run, and no request leaves for another site.
func TestHostileTextsInBrowser(t *testing.T) {
	const hostile = `"><img src=x onerror="window.hacked=1"><script>window.hacked=1</script><svg onload=window.hacked=1><a href="javascript:window.hacked=1">x</a>` + "\u202e{{.}}"
	s := newAPIServer(t)
	p := pkg("shop", "web", hostile, dependsOn("database"+hostile, "shop", "orders-db", hostile, false), func(o object) {
		broken(o)
		blocking("deploy", hostile, hostile, hostile, hostile)(o)
		condition("Stalled", "True", "ProgressDeadlineExceeded", hostile)(o)
		metaOf(o)["annotations"] = object{"package-operator.run/pause-message": hostile}
		statusOf(o)["resolved"].(object)["packageName"] = hostile
	})

	s.put(revisions(p, 7, hostile+"1", hostile+"2")...)
	s.put(crashing("shop", "web", hostile)...)
	s.put(refused("hooks", "made", `admission webhook "deny.example.com" denied the request: `+hostile)...)
	w := open(t, s)
	elsewhere := &requests{}
	chromedp.ListenTarget(w.Context, elsewhere.listen(w.base))
	w.do(network.Enable())
	for path, element := range map[string]string{
		"packages": "table.list", "packages/shop/web": "#phases .track", "packages/hooks/made": "#cause .why", "packages/shop/web/diff?from=7&to=8": ".diff",
	} {
		w.to(path, element)
		if path == "packages/hooks/made" { // the Event of a webhook is its cause
			w.until(`document.querySelector("#cause .why").textContent.includes("the webhook")`)
		}
		if w.eval(`document.querySelector("main").textContent.includes("onerror=")`) != "true" {
			t.Errorf("%s does not show the text: %s", path, w.eval(`document.querySelector("main").innerText`))
		}
		if path == "packages/shop/web" { // by the stream as well
			s.change(p, blocking("deploy", hostile, hostile, hostile, hostile+"streamed"))
			w.until(`document.querySelector("main").textContent.includes("streamed")`)
		}
		if got := w.eval(`[window.hacked, document.querySelectorAll("main img, main script, [onerror], [onload], [href^=javascript]").length]`); got != ",0" {
			t.Errorf("%s: %s", path, got)
		}
	}

	if found := elsewhere.found(); len(found) > 0 {
		t.Errorf("requests: %v", found)
	}
}

func awaited(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }

// requests are the addresses of requests to other sites.
type requests struct {
	mu  sync.Mutex
	all []string
}

// listen returns the handler of a browser's events while tests run.
func (r *requests) listen(base string) func(any) {
	site := base[:strings.Index(base[len("http://"):], "/")+len("http://")]
	return func(e any) {
		if sent, is := e.(*network.EventRequestWillBeSent); is && !strings.HasPrefix(sent.Request.URL, site) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.all = append(r.all, sent.Request.URL)
		}
	}
}

func (r *requests) found() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all)
}

// still waits until fonts are loaded and animations have ended.
func (w *window) still() {
	w.t.Helper()
	w.do(chromedp.Evaluate(`(async () => {
		await document.fonts.ready;
		await Promise.allSettled(document.getAnimations().filter((a) => a.effect.getComputedTiming().endTime !== Infinity).map((a) => a.finished));
		for (const a of document.getAnimations()) { a.pause(); a.currentTime = 0; }
		await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
	})()`, nil, awaited))
}

// picture saves the visible part.
func (w *window) picture(name string) {
	w.t.Helper()
	dir := os.Getenv("LOCKSTEP_PICTURES")
	if dir == "" {
		dir = w.t.TempDir()
	}

	var shot []byte
	w.do(chromedp.Evaluate(`document.activeElement.blur(); scrollTo(0, 0)`, nil), chromedp.ActionFunc(func(ctx context.Context) (err error) {
		shot, err = page.CaptureScreenshot().WithFormat(page.CaptureScreenshotFormatPng).Do(ctx)
		return err
	}))
	small, err := fewColors(shot)
	if err != nil {
		w.t.Fatal(err)
	}
	if len(small) < 5<<10 || len(small) > 150<<10 {
		w.t.Errorf("%s has %d bytes", name, len(small))
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), small, 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// fewColors makes a picture smaller by reducing it to its 256 most frequent colors. Pages have few,
// except at the edges of letters.
func fewColors(shot []byte) ([]byte, error) {
	full, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		return nil, err
	}

	counts := map[color.RGBA]int{}
	at := full.Bounds()
	for y := at.Min.Y; y < at.Max.Y; y++ {
		for x := at.Min.X; x < at.Max.X; x++ {
			counts[color.RGBAModel.Convert(full.At(x, y)).(color.RGBA)]++
		}
	}

	frequent := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int {
		return cmp.Or(counts[b]-counts[a], int(a.R)-int(b.R), int(a.G)-int(b.G), int(a.B)-int(b.B))
	})
	var palette color.Palette
	for _, c := range frequent[:min(len(frequent), 256)] {
		palette = append(palette, c)
	}

	small := image.NewPaletted(at, palette)
	draw.Draw(small, at, full, at.Min, draw.Src)
	var b bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, small)
	return b.Bytes(), err
}

// TestPictures writes pictures to the folder that LOCKSTEP_PICTURES names, light and dark, wide and
// narrow. The documentation uses the wide ones without the name of a colour.
func TestPictures(t *testing.T) {
	s := newAPIServer(t)
	s.put(shop()...)
	w := open(t, s)
	for _, view := range []struct {
		name, path, element string
		// dark means that the documentation's picture is dark.
		dark   bool
		height int64
	}{
		{"ui-packages", "packages", "table.list", false, 800},
		{"ui-rollout", "packages/shop/web", "#phases .track", false, 860},
		{"ui-package", "packages/payments/api", "#cause .why", true, 860},
	} {
		for _, other := range []bool{false, true} {
			for _, narrow := range []bool{false, true} {
				name, dark := view.name, view.dark != other
				if other {
					name += map[bool]string{false: "-light", true: "-dark"}[dark]
				}
				w.size(1280, view.height)
				if narrow {
					name += "-narrow"
					w.size(390, 844)
				}
				w.dark(dark)
				w.to(view.path, view.element)
				w.until(`document.querySelector("#live").hidden || document.querySelector("#live .word").textContent === "live"`)
				w.still()
				w.picture(name)
			}
		}
	}
}
