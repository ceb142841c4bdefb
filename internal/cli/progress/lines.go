package progress

import (
	"fmt"
	"slices"
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
)

// objectLines is the size of a phase up to which each object that becomes ready
// has a line of its own; of larger phases, each tenth has one.
const objectLines = 20

// Lines says what changed from one State to the next, one transition a line.
// The zero State stands for nothing known yet.
func Lines(before, after State) []string {
	var lines []string
	add := func(changed bool, format string, args ...any) {
		if changed {
			lines = append(lines, oneLine(fmt.Sprintf(format, args...)))
		}
	}
	add(after.Lost != "" && after.Lost != before.Lost, "connection lost, trying again: %s", after.Lost)
	add(after.Lost == "" && before.Lost != "", "connected again")
	if after.Gone {
		add(!before.Gone, "gone")
		return lines
	}
	add(after.Unnoticed && !before.Unnoticed, "%s", unnoticed)
	if after.Deleting {
		add(!before.Deleting, "deletion has begun")
	} else {
		add(after.PullError != "" && after.PullError != before.PullError, "cannot pull %s: %s", after.Image, after.PullError)
		add(after.Invalid != "" && after.Invalid != before.Invalid, "invalid: %s", firstOf(after.Invalid))
		fresh := after.Unpacked && (!before.Unpacked || after.Digest != before.Digest)
		add(fresh, "%s", unpacked(after))
		for _, line := range after.Ignored {
			add(fresh, "ignored: %s", line)
		}
	}
	if after.Revision != 0 && after.Revision != before.Revision {
		add(!after.Deleting, "revision %d: %s, %s", after.Revision, plural(len(after.Phases), "phase"), plural(total(after.Phases), "object"))
		before = forget(before)
	}
	lines = append(lines, phaseLines(before, after)...)
	add(after.Paused != "" && before.Paused == "", "paused: %s", after.Paused)
	add(after.Stalled != "" && before.Stalled == "" && after.Invalid == "" && after.PullError == "" && len(after.Blocking) == 0, "stalled: %s", after.Stalled)
	return lines
}

// forget keeps of a revision only which objects were ready: of those that the
// next one does not change there is nothing to tell.
func forget(s State) State {
	phases := make([]Phase, len(s.Phases))
	for i, ph := range s.Phases {
		phases[i] = Phase{Name: ph.Name, Objects: ph.Objects}
	}
	s.Phases, s.Blocking = phases, nil
	return s
}

// Remember is before brought up to after, with what after does not know yet: so
// that nothing is told twice.
func Remember(before, after State) State {
	if after.Revision == 0 {
		after.Revision, after.Phases, after.Blocking = before.Revision, before.Phases, before.Blocking
		return after
	}
	// What a new revision has not reached is as ready as it was.
	ready := readyObjects(before.Phases)
	phases := make([]Phase, len(after.Phases))
	for i, ph := range after.Phases {
		ph.Objects = slices.Clone(ph.Objects)
		for j := range ph.Objects {
			if o := &ph.Objects[j]; o.State == ObjectWaiting && ready[ph.Name+"\x00"+o.Name] {
				o.State = ObjectReady
			}
		}
		phases[i] = ph
	}
	after.Phases = phases
	return after
}

// readyObjects names the objects that are ready, by phase.
func readyObjects(phases []Phase) map[string]bool {
	ready := map[string]bool{}
	for _, ph := range phases {
		for _, o := range ph.Objects {
			if o.State == ObjectReady {
				ready[ph.Name+"\x00"+o.Name] = true
			}
		}
	}
	return ready
}

func unpacked(s State) string {
	text := "unpacked " + s.Image
	if s.title() != "" {
		text += ": " + s.title()
	}
	if s.Digest != "" {
		text += ", " + s.Digest
	}
	return text
}

func phaseLines(before, after State) []string {
	old := map[string]Phase{}
	for _, ph := range before.Phases {
		old[ph.Name] = ph
	}
	messages := map[string]string{}
	for _, b := range before.Blocking {
		messages[b.Phase+"\x00"+b.Name] = b.Message
	}
	var lines []string
	for _, ph := range after.inOrder() {
		was := old[ph.Name]
		for _, name := range newlyReady(was, ph) {
			lines = append(lines, fmt.Sprintf("phase %s: %s is ready", ph.Name, name))
		}
		if moved(was, ph, after.Deleting) {
			lines = append(lines, fmt.Sprintf("phase %s: %s, %s", ph.Name, phaseWord(ph, after.Deleting), count(ph, after.Deleting)))
		}
		news := func(b Object) bool { return b.Phase == ph.Name && messages[b.Phase+"\x00"+b.Name] != b.Message }
		for _, remark := range remarks(after.Blocking, news) {
			lines = append(lines, objects.Cut("phase "+ph.Name+": "+remark.String()))
		}
	}
	return lines
}

// inOrder returns the phases in the order in which they are worked on.
func (s State) inOrder() []Phase {
	if !s.Deleting {
		return s.Phases
	}
	reverse := make([]Phase, 0, len(s.Phases))
	for i := len(s.Phases) - 1; i >= 0; i-- {
		reverse = append(reverse, s.Phases[i])
	}
	return reverse
}

// moved reports whether a phase is to be told of: it changed its state, or a tenth
// of its objects did. A phase that waits from the beginning is no news.
func moved(was, is Phase, deleting bool) bool {
	if was.State == "" && is.State == corev1alpha1.PhaseStateWaiting || deleting && !active(is, true) && !finished(is, true) {
		return false
	}
	if was.State != is.State || was.Later != is.Later {
		return true
	}
	return is.Total > objectLines && tenth(was) != tenth(is) && active(is, deleting)
}

func tenth(ph Phase) int {
	if ph.Total == 0 {
		return 0
	}
	return ph.Ready * 10 / ph.Total
}

// newlyReady names the objects of a small phase that were not ready before.
func newlyReady(was, is Phase) []string {
	if is.Total > objectLines || was.State == corev1alpha1.PhaseStateReady {
		return nil
	}
	ready := readyObjects([]Phase{was})
	var names []string
	for _, o := range is.Objects {
		if o.State == ObjectReady && !ready[was.Name+"\x00"+o.Name] {
			names = append(names, o.Name)
		}
	}
	return names
}

// firstOf is the first of several lines, with the number of the others.
func firstOf(text string) string {
	first, rest, more := strings.Cut(text, "\n")
	if !more {
		return text
	}
	return fmt.Sprintf("%s (and %s)", first, plural(strings.Count(rest, "\n")+1, "more problem"))
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
