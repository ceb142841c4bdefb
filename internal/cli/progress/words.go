package progress

import (
	"fmt"
	"time"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

const unnoticed = "no manager has looked at it yet: is lockstep-manager running?"

var headlines = map[Summary]string{
	SummaryAvailable: "available", SummaryPending: "pending", SummaryProgressing: "rolling out",
	SummaryStalled: "stuck", SummaryUnavailable: "unavailable", SummaryInvalid: "invalid",
	SummaryImagePullError: "image cannot be pulled", SummaryPaused: "paused", SummaryDeleting: "being deleted",
}

// Words are a Summary for a person, as in "package shop/web: rolling out".
func (s Summary) Words() string { return headlines[s] }

// phaseWord says what goes on in a phase.
func phaseWord(ph Phase, deleting bool) string {
	if ph.Later {
		return "not yet"
	}
	switch ph.State {
	case corev1alpha1.PhaseStateTearingDown:
		return "deleting"
	case corev1alpha1.PhaseStateGone:
		return "gone"
	}
	if deleting {
		return "not yet"
	}
	switch ph.State {
	case corev1alpha1.PhaseStateWaiting:
		return "waiting"
	case corev1alpha1.PhaseStateApplying:
		return "applying"
	case corev1alpha1.PhaseStateProbing:
		return "waiting for probes"
	case corev1alpha1.PhaseStateReady:
		return "ready"
	case corev1alpha1.PhaseStateUnready:
		return "not ready any more"
	}
	return "unknown"
}

// active reports whether something goes on in a phase, or should.
func active(ph Phase, deleting bool) bool {
	if ph.Later {
		return false
	}
	switch ph.State {
	case corev1alpha1.PhaseStateApplying, corev1alpha1.PhaseStateProbing, corev1alpha1.PhaseStateUnready:
		return !deleting
	case corev1alpha1.PhaseStateTearingDown:
		return true
	}
	return false
}

// blocksNow reports whether what a status names as blocking a phase is what is
// waited for: at the beginning of a deletion it is still about the rollout.
func blocksNow(phase string, phases []corev1alpha1.PhaseStatus, deleting bool) bool {
	for _, ph := range phases {
		if deleting && ph.Name == phase {
			return ph.State == corev1alpha1.PhaseStateTearingDown
		}
	}
	return true
}

// finished reports whether nothing is left to do in a phase.
func finished(ph Phase, deleting bool) bool {
	if deleting {
		return ph.State == corev1alpha1.PhaseStateGone
	}
	return ph.State == corev1alpha1.PhaseStateReady
}

// count is how many objects of a phase are done; a phase that is still there as
// a whole has all of them before it.
func count(ph Phase, deleting bool) string {
	done := ph.Ready
	if deleting && ph.State != corev1alpha1.PhaseStateTearingDown && ph.State != corev1alpha1.PhaseStateGone {
		done = 0
	}
	return fmt.Sprintf("%d/%d", done, ph.Total)
}

// total counts the objects of all phases.
func total(phases []Phase) int {
	n := 0
	for _, ph := range phases {
		n += ph.Total
	}
	return n
}

// plural is "1 object", "2 objects".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// title names what is in the image.
func (s State) title() string {
	if s.Package == "" || s.Version == "" {
		return s.Package
	}
	return s.Package + " " + s.Version
}

// Elapsed writes a duration as people read it: 0.4s, 12.3s, 1m05s, 2h03m.
func Elapsed(d time.Duration) string {
	d = max(d, 0)
	switch {
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
