package rollout

import (
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/limits"
)

// checkTimeline returns an error of usage.
func (c *historyCommand) checkTimeline() error {
	if c.timeline && (c.Output.Is(wideFormat) || c.Output.ByName()) {
		return errors.New("--timeline is printed as text, json or yaml")
	}
	return nil
}

// timeline is the timeline of a revision. Its JSON fields are stable.
type timeline struct {
	Name     string      `json:"name"`
	Revision int64       `json:"revision"`
	Created  metav1.Time `json:"created"`
	// Phases in their order, and the number of omitted ones.
	Phases  []timelinePhase `json:"phases"`
	Omitted int             `json:"omitted,omitempty"`
}

// timelinePhase also has the duration of each part, in seconds.
type timelinePhase struct {
	corev1alpha1.PhaseTimes `json:",inline"`
	Applying                *float64 `json:"applyingSeconds,omitempty"`
	Waiting                 *float64 `json:"waitingSeconds,omitempty"`
}

// printTimeline prints the timeline of the newest revision, or of the chosen one.
func (c *historyCommand) printTimeline(r *cluster.Rollout) error {
	if len(r.Sets) == 0 {
		return ErrNoRevision
	}
	set := r.Sets[len(r.Sets)-1]
	if c.revision > 0 {
		var err error
		if set, err = r.Revision(c.revision); err != nil {
			return err
		}
	}

	t, err := timelineOf(set)
	if err != nil {
		return err
	}
	return c.Output.Write(c.Streams.Out, t, func(terminal.Styles) string { return t.text() })
}

// timelineOf returns the timeline of a revision. Earlier managers did not record one.
func timelineOf(set corev1alpha1.GenericObjectSet) (*timeline, error) {
	status := set.ObjectSetStatus()
	t := &timeline{Name: set.GetName(), Revision: set.ObjectSetSpec().Revision, Created: set.GetCreationTimestamp(), Phases: []timelinePhase{}}
	if len(status.Timeline) == 0 {
		return nil, fmt.Errorf("revision %d has no timeline: no phase of it was opened, or an earlier version of the manager rolled it out", t.Revision)
	}
	for _, times := range status.Timeline {
		t.Phases = append(t.Phases, timelinePhase{PhaseTimes: times, Applying: between(times.OpenedAt, times.AppliedAt), Waiting: between(times.AppliedAt, times.ReadyAt)})
	}

	t.Omitted = max(0, len(set.ObjectSetSpec().Phases)-limits.TimelinePhases)
	return t, nil
}

// between returns seconds. It returns nil if another manager with a slower clock wrote the second
// moment.
func between(from, to *metav1.MicroTime) *float64 {
	if from == nil || to == nil {
		return nil
	}
	seconds := max(0, to.Sub(from.Time).Seconds())
	return &seconds
}

// text shows when each phase was opened, relative to the first one, and its duration.
func (t *timeline) text() string {
	// The first phase can lack the time of its opening, so the first known time counts.
	var first *metav1.MicroTime
	for _, phase := range t.Phases {
		if first == nil {
			first = phase.OpenedAt
		}
	}

	rows := [][]string{{"PHASE", "OPENED", "APPLIED IN", "READY AFTER", "WAITED FOR"}}
	for _, phase := range t.Phases {
		rows = append(rows, []string{
			terminal.Line(phase.Name), since(between(first, phase.OpenedAt), "+"), since(phase.Applying, ""), since(phase.Waiting, ""), terminal.Line(phase.WaitedFor),
		})
	}

	head, out := fmt.Sprintf("Revision %d", t.Revision), terminal.Writer{}
	if first != nil {
		head += ", which started at " + first.UTC().Format(time.RFC3339)
	}
	out.Line(head + ":")
	out.Rows("", rows)
	if t.Omitted > 0 {
		out.Line(fmt.Sprintf("Not shown: %d phases after the first %d, because their times are not kept.", t.Omitted, limits.TimelinePhases))
	}
	return out.String()
}

// since writes seconds; empty for events that have not happened.
func since(seconds *float64, sign string) string {
	if seconds == nil {
		return ""
	}
	d := time.Duration(*seconds * float64(time.Second))
	if d < 10*time.Second {
		return sign + d.Round(10*time.Millisecond).String()
	}
	return sign + d.Round(time.Second).String()
}
