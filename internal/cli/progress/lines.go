package progress

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/objects"
)

// Unnoticed is reported if no manager has reported on a package.
const Unnoticed = "no manager has noticed it yet: is lockstep-manager running?"

// transition collects the lines about a change of a State.
type transition struct {
	before, after State
	lines         []string
}

// add adds a line if something has changed.
func (t *transition) add(changed bool, format string, args ...any) {
	if changed {
		t.lines = append(t.lines, oneLine(fmt.Sprintf(format, args...)))
	}
}

// Lines describes the transitions from one State to the next, one per line.
func Lines(before, after State) []string {
	t := &transition{before: before, after: after}
	t.add(after.Lost != "" && after.Lost != before.Lost, "connection lost, retrying: %s", after.Lost)
	t.add(after.Lost == "" && before.Lost != "", "connected again")
	// No other line is about a package that does not exist.
	if after.Gone {
		t.add(!before.Gone, "gone")
		return t.lines
	}
	t.add(after.Unnoticed != "" && before.Unnoticed == "", "%s", after.Unnoticed)
	t.add(after.Deleting && !before.Deleting, "deletion has started")
	t.add(after.Held != "" && after.Held != before.Held, "held: %s", after.Held)
	t.add(after.Away == "" && before.Away != "", "target connected")
	// The time of the next attempt changes with each one, so it does not count.
	if after.Away != "" && untimed(after.Away) != untimed(before.Away) {
		t.lines = append(t.lines, "target not connected: "+after.Away)
	}
	if !after.Deleting {
		t.load()
	}

	if after.Revision != 0 && after.Revision != before.Revision {
		total := 0
		for _, ph := range after.Phases {
			total += ph.Total
		}
		t.add(!after.Deleting, "revision %d: %s, %s", after.Revision, terminal.Count(len(after.Phases), "phase"), terminal.Count(total, "object"))
		// The phases of another revision are not transitions of this one.
		t.before.Phases, t.before.Blocking = nil, nil
	}
	t.phases()
	t.add(after.Paused != "" && before.Paused == "", "paused: %s", after.Paused)
	// Other lines explain these causes in more detail.
	explained := len(after.Blocking) > 0 || after.Invalid+after.PullError+after.Waiting+after.Away != ""
	t.add(after.Stalled != "" && before.Stalled == "" && !explained, "stalled: %s", after.Stalled)

	return t.lines
}

// untimed removes the time of the next attempt from a message.
func untimed(message string) string {
	text, _, _ := strings.Cut(message, " It is tried again after ")
	return text
}

// load adds the lines about the choice and the load.
func (t *transition) load() {
	before, after := t.before, t.after
	t.add(after.Unresolved != "" && after.Unresolved != before.Unresolved, "no version: %s", firstOf(after.Unresolved))
	t.add(after.Chosen != "" && after.Chosen != before.Chosen && after.Unresolved == "", "chosen %s", after.Chosen)
	// Only dependencies that were not listed before are news.
	known := strings.Split(before.Waiting, "\n")
	for line := range strings.SplitSeq(after.Waiting, "\n") {
		t.add(after.Waiting != "" && !slices.Contains(known, line), "dependency %s", line)
	}

	t.add(after.Waiting == "" && before.Waiting != "", "dependencies are ready")
	problem := fmt.Sprintf("cannot pull %s: %s", after.Image, after.PullError)
	if after.NotVerified {
		problem = after.PullError
	}
	t.add(after.PullError != "" && after.PullError != before.PullError, "%s", problem)
	t.add(after.Invalid != "" && after.Invalid != before.Invalid, "invalid: %s", firstOf(after.Invalid))

	// The digest can change for the same image, if its tag has moved.
	fresh := after.Unpacked && (!before.Unpacked || after.Digest != before.Digest)
	t.add(fresh, "%s", unpacked(after))
	for _, line := range after.Ignored {
		t.add(fresh, "ignored: %s", line)
	}
}

// Remember adds to after the revision that only before has, so that Lines does not repeat it.
func Remember(before, after State) State {
	if after.Revision == 0 {
		after.Revision, after.Phases, after.Blocking = before.Revision, before.Phases, before.Blocking
	}
	return after
}

// unpacked returns the line about an unpacked image. The digest is left out if the image names it.
func unpacked(s State) string {
	text := "unpacked " + s.Image
	if s.title() != "" {
		text += ": " + s.title()
	}
	if s.Digest != "" && !strings.HasSuffix(s.Image, "@"+s.Digest) {
		text += ", " + s.Digest
	}
	return text
}

// phases adds the lines about changed phases, with their blocking objects.
func (t *transition) phases() {
	old := map[string]Phase{}
	for _, ph := range t.before.Phases {
		old[ph.Name] = ph
	}

	type object struct{ phase, name string }
	messages := map[object]string{}
	for _, b := range t.before.Blocking {
		messages[object{b.Phase, b.Name}] = b.Message
	}

	for _, ph := range t.after.inOrder() {
		if moved(old[ph.Name], ph) {
			t.lines = append(t.lines, fmt.Sprintf("phase %s: %s, %s", ph.Name, ph.Word(), ph.Count()))
		}
		changed := func(b Object) bool {
			return b.Phase == ph.Name && messages[object{b.Phase, b.Name}] != b.Message
		}
		for _, remark := range remarks(t.after.Blocking, changed) {
			t.lines = append(t.lines, objects.Truncate("phase "+ph.Name+": "+remark.String()))
		}
	}
}

// moved reports whether a phase changed its state, or a tenth of its objects did.
func moved(was, is Phase) bool {
	// A phase that only waits has no news.
	if was.State == "" && is.State == corev1alpha1.PhaseStateWaiting || is.Deleting && !is.Active() && !is.Finished() {
		return false
	}
	if was.State != is.State || was.Later != is.Later {
		return true
	}
	tenth := func(ph Phase) int { return ph.Ready * 10 / max(ph.Total, 1) }
	return tenth(was) != tenth(is) && is.Active()
}

// firstOf returns the first line and the number of others.
func firstOf(text string) string {
	first, rest, more := strings.Cut(text, "\n")
	if !more {
		return text
	}
	return fmt.Sprintf("%s (and %s)", first, terminal.Count(strings.Count(rest, "\n")+1, "more problem"))
}

// oneLine replaces all white space by single spaces, because messages of the API server can have
// several lines.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// Elapsed formats a duration as 0.4s, 12.3s, 1m05s or 2h03m.
func Elapsed(d time.Duration) string {
	d = max(d, 0)
	switch {
	// Durations that would be rounded to 60.0s are printed as minutes.
	case d < time.Minute-50*time.Millisecond:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Hour-500*time.Millisecond:
		d = d.Round(time.Second)
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	default:
		d = d.Round(time.Minute)
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
}
