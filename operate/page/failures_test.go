package page

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// A page that is open says when the API server does not answer, or refuses a watch that it allowed before, and shows what was seen
// last; it shows what changed meanwhile once the API server answers again, without being loaded. It says, too, when its command ends.
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

// A package of 20,000 objects is a page that a browser draws like another: what blocks, and so many of the others as fit.
func TestManyObjects(t *testing.T) {
	const objects, each = 20_000, 500
	s := newAPIServer(t)
	p := pkg("shop", "large", "1.0.0", broken)
	large := revisions(p, 8, "1.0.0")
	set := large[len(large)-4] // before the objects themselves
	if set["kind"] != "ObjectSet" {
		t.Fatal(set["kind"])
	}
	var names []any
	for i := 0; i < objects; i += each {
		slice := named(engine, "ObjectSlice", "shop", fmt.Sprintf("large-%d", i/each))
		var all []any
		for k := i; k < i+each; k++ {
			all = append(all, object{"object": object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": fmt.Sprintf("object-%05d", k), "namespace": "shop"}, "data": object{"text": strings.Repeat("x", 200)}}})
		}
		slice["objects"] = all
		s.put(slice)
		names = append(names, metaOf(slice)["name"])
	}
	deploy := set["spec"].(object)["phases"].([]any)[1].(object)
	deploy["slices"] = names
	phases(p, "namespace 1/1", "deploy 19000/20003")
	phases(set, "namespace 1/1", "deploy 19000/20003")
	set["status"].(object)["blocking"] = statusOf(p)["blocking"]
	s.put(large...)
	s.put(crashing("shop", "large", "database migration 42 has not run")...)
	w := open(t, s)
	begin := time.Now()
	w.to("packages/shop/large", "#phases .track")
	seen := time.Since(begin)
	painted := w.firstPaint()
	w.until(`document.querySelector("#cause .why").textContent.includes("database migration 42 has not run")`)
	w.until(`document.querySelector("#live .word").textContent === "live"`)
	begin = time.Now()
	s.change(p, func(o object) { condition("Stalled", "True", "ProgressDeadlineExceeded", "object 12345 is late")(o) })
	w.until(`document.querySelector("#conditions").textContent.includes("object 12345 is late")`)
	t.Logf("%d objects: first paint %s ms, seen after %.2f s, a change %.2f s later; %s elements; program %d MiB, tab %d MiB", objects, painted, seen.Seconds(), time.Since(begin).Seconds(),
		w.eval(`document.querySelectorAll("*").length`), residentMiB(t, w.process.Pid), w.tabMiB())
	shown := w.eval(`document.querySelectorAll("#phases .o").length`)
	if text := w.eval(`document.querySelector("#phases").textContent`); shown != "101" || !strings.Contains(text, "and 19903 more") || !strings.Contains(text, "0 of 3 replicas") {
		t.Errorf("%s objects are shown: %s", shown, text)
	}
	if written := s.writes(); len(written) > 0 {
		t.Errorf("the page has written: %v", written)
	}
}
