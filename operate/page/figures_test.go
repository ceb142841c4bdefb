package page

import (
	"fmt"
	"os"
	"path/filepath"
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
			browser := newBrowser(t)
			address, process := serve(t, s.kubeconfig(t))
			w := &window{Context: browser, t: t, process: process}
			begin := time.Now()
			w.do(chromedp.Navigate(address), chromedp.WaitVisible("table.list", chromedp.ByQuery))
			first := time.Since(begin)
			var at string
			w.do(chromedp.Location(&at))
			w.base = strings.TrimSuffix(at, "packages")
			begin = time.Now()
			w.to("packages", "table.list")
			again := time.Since(begin)
			paint := w.eval(`Math.round(performance.getEntriesByName("first-contentful-paint")[0]?.startTime)`)
			w.until(`document.querySelector("#live .word").textContent === "live"`)
			longest := time.Duration(0)
			for i := range 10 {
				begin = time.Now()
				s.change(all[10*i], available)
				w.until(fmt.Sprintf(`document.querySelector("[data-key='package team-%03d/service-%05d']")?.dataset.state !== "stuck"`, 10*i%200, 10*i))
				longest = max(longest, time.Since(begin))
			}
			t.Logf("%d packages: seen %.2f s after the start of the program's page, %.2f s when opened again (first paint %s ms); a change at most %.2f s later; program %d MiB, tab %d MiB",
				n, first.Seconds(), again.Seconds(), paint, longest.Seconds(), residentMiB(t, process.Pid), w.tabMiB())
			s.churn(all, changes, func(k int) {
				w.until(fmt.Sprintf(`document.querySelector("main").textContent.includes("replica %d is late")`, k))
			})
			w.do(chromedp.Evaluate("0", nil))
			program, tab := residentMiB(t, process.Pid), w.tabMiB()
			t.Logf("%d packages, after %d changes: program %d MiB, tab %d MiB", n, changes, program, tab)
			if program > 150 || tab > 200 {
				t.Errorf("program %d MiB, more than 150, or tab %d MiB, more than 200", program, tab)
			}
		})
	}
}

// churn changes what one broken package after the other waits for, a thousand at once, and waits in between until one is seen.
func (s *apiServer) churn(all []object, changes int, seen func(k int)) {
	for k := 0; k < changes; {
		for end := min(k+1000, changes); k < end; k++ {
			message := fmt.Sprintf("replica %d is late", k)
			s.change(all[10*(k%100)], func(o object) {
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
