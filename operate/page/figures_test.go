package page

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// available makes a package of many that is broken one that is not.
func available(o object) {
	condition("Stalled", "False", "Progressing", "")(o)
	condition("Ready", "True", "Ready", "")(o)
	statusOf(o)["blocking"] = []any{}
	phases(o, "deploy 1/1")
}

// What thousands of packages cost: until they are seen, until a change is, and how much memory the program and the tab have, in the
// end after 100,000 changes of which the tab shows what it can. The figures are reported and compared with nothing but memory:
// times are those of this machine.
func TestFigures(t *testing.T) {
	sizes, changes := []int{1000}, 500
	if os.Getenv("LOCKSTEP_DEEP") != "" {
		sizes, changes = []int{1000, 5000}, 100_000
	}
	for _, n := range sizes {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			s := newAPIServer(t)
			all := many(n)
			s.put(all...)
			rows := firstRows(all)
			browser := newBrowser(t)
			if _, err := plugin(); err != nil { // it is built before the time begins
				t.Fatal(err)
			}
			begin := time.Now()
			address, process := serve(t, s.kubeconfig(t))
			w := &window{Context: browser, t: t, process: process}
			w.do(chromedp.Navigate(address), chromedp.WaitVisible("table.list", chromedp.ByQuery))
			first := time.Since(begin)
			painted := w.firstPaint()
			var at string
			w.do(chromedp.Location(&at))
			w.base = strings.TrimSuffix(at, "packages")
			begin = time.Now()
			w.to("packages", "table.list")
			again := time.Since(begin)
			repainted := w.firstPaint()
			w.until(`document.querySelector("#live .word").textContent === "live"`)
			longest := time.Duration(0)
			for _, o := range rows[:10] {
				state := fmt.Sprintf(`document.querySelector("[data-key='package %s']")?.dataset.state`, keyOf(o))
				if was := w.eval(state); was != "stuck" {
					t.Fatalf("%s is %s at first", keyOf(o), was)
				}
				begin = time.Now()
				s.change(o, available)
				w.until(state + ` !== "stuck"`)
				longest = max(longest, time.Since(begin))
			}
			t.Logf("%d packages: first paint %s ms after the list was requested first, %.2f s after the program was started; %s ms when requested again, seen after %.2f s; a change at most %.2f s later; program %d MiB, tab %d MiB",
				n, painted, first.Seconds(), repainted, again.Seconds(), longest.Seconds(), residentMiB(t, process.Pid), w.tabMiB())
			begin = time.Now()
			s.churn(rows, changes, func(k int) {
				w.until(fmt.Sprintf(`document.querySelector("main").textContent.includes("replica %d is late")`, k))
			})
			program, tab := residentMiB(t, process.Pid), w.tabMiB()
			t.Logf("%d packages, after %d changes in %.0f s: program %d MiB, tab %d MiB", n, changes, time.Since(begin).Seconds(), program, tab)
			if program > 150 || tab > 200 {
				t.Errorf("program %d MiB, more than 150, or tab %d MiB, more than 200", program, tab)
			}
		})
	}
}

// firstPaint is when something was painted first, in milliseconds after the page was requested. A browser says so once the picture
// is on the screen, which may be after an element is visible.
func (w *window) firstPaint() string {
	w.t.Helper()
	const entries = `performance.getEntriesByName("first-contentful-paint")`
	w.until(entries + ".length > 0")
	return w.eval("Math.round(" + entries + "[0].startTime)")
}

// firstRows are the packages of many that the first page of the list has: those that are broken, in the order of their names.
func firstRows(all []object) (rows []object) {
	for i := 0; i < len(all); i += 10 {
		rows = append(rows, all[i])
	}
	slices.SortFunc(rows, func(a, b object) int { return strings.Compare(keyOf(a), keyOf(b)) })
	return rows[:100]
}

// churn changes what one broken package after the other waits for, a thousand at once, and waits in between until the last of them
// is seen: all have to be on the page that is open.
func (s *apiServer) churn(shown []object, changes int, seen func(k int)) {
	for k := 0; k < changes; {
		for end := min(k+1000, changes); k < end; k++ {
			message := fmt.Sprintf("replica %d is late", k)
			s.change(shown[k%len(shown)], func(o object) {
				broken(o)
				condition("Stalled", "True", "ProgressDeadlineExceeded", message)(o)
				statusOf(o)["blocking"] = []any{}
			})
		}
		seen(k - 1)
	}
}

// residentMiB is the memory of a process that no file stands behind; 0 on a system that does not say it.
func residentMiB(t *testing.T, pid int) (mib int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if value, is := strings.CutPrefix(line, "RssAnon:"); is {
			_, _ = fmt.Sscan(value, &mib)
		}
	}
	return mib >> 10
}

// tabMiB is the memory of the process that draws the tab: the largest renderer of the browser, as others wait for tabs.
func (w *window) tabMiB() (mib int) {
	w.t.Helper()
	root := chromedp.FromContext(w.Context).Browser.Process()
	children, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || root == nil {
		return 0
	}
	parents := map[int]int{}
	for _, file := range children {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it ended
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if fields := strings.Fields(string(text[strings.LastIndex(string(text), ")")+1:])); len(fields) > 1 {
			parents[pid], _ = strconv.Atoi(fields[1])
		}
	}
	for pid := range parents {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		for up := pid; up > 1; up = parents[up] {
			if up == root.Pid && strings.Contains(string(line), "--type=renderer") {
				mib = max(mib, residentMiB(w.t, pid))
			}
		}
	}
	return mib
}
