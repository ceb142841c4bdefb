package page

import (
	"fmt"
	"os"
	"testing"

	"github.com/chromedp/chromedp"
)

// An open page shows a note and the last known state if the API server does not answer, or refuses
// a watch that it permitted before. Once the API server answers again, the page shows the changes
// without being reloaded. It also reports the end of its command.
func TestAPIServerGoesAndComesBack(t *testing.T) {
	s := newAPIServer(t)
	all := many(20)
	s.put(all...)
	w := open(t, s)
	w.do(chromedp.Evaluate(`void (window.loadedOnce = true)`, nil))
	row := func(o object) string {
		return fmt.Sprintf(`document.querySelector("[data-key='package %s']").dataset.state`, keyOf(o))
	}

	for how, says := range map[failure]string{away: "The packages cannot be watched: the cluster at " + s.URL + " cannot be reached", forbidding: "You may not watch packages: they are shown as they were at "} {
		changed := all[10*(how-1)]
		s.fail(how)
		w.until(fmt.Sprintf(`document.querySelector("#notes").textContent.includes(%q)`, says))
		w.accessible(fmt.Sprintf("with the note of failure %d", how))
		s.change(changed, available)
		if state := w.eval(row(changed)); state != "stuck" {
			t.Errorf("what was not seen is shown as %s", state)
		}
		s.fail(0)
		w.until(row(changed) + ` === "available" && document.querySelector("#notes").textContent.trim() === ""`)
	}

	if w.eval(`window.loadedOnce`) != "true" {
		t.Error("the page was loaded again")
	}
	if err := w.process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}

	w.until(`document.querySelector("#live .word").textContent !== "live" && document.querySelector("#live").classList.contains("bad")`)
	w.accessible("after the command")
}

// available makes a package of many that is broken one that is not.
func available(o object) {
	condition("Stalled", "False", "Progressing", "")(o)
	condition("Ready", "True", "Ready", "")(o)
	statusOf(o)["blocking"] = []any{}
	phases(o, "deploy 1/1")
}
