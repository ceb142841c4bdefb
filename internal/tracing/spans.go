package tracing

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/metrics"
	"lockstep.run/lockstep/internal/objectsets"
)

// Names of spans.
const (
	nameRollout  = "rollout"
	nameLoad     = "load"
	nameClaim    = "claim"
	namePhase    = "phase"
	nameApply    = "apply"
	nameWait     = "wait"
	nameHandOver = "hand-over"
	nameTeardown = "teardown"
)

// span is one of the trace of a revision.
type span struct {
	name string
	// key identifies the span in its trace, and parent its parent: empty for the rollout itself.
	key, parent string
	start, end  time.Time
	// failed is why what the span stands for has not succeeded.
	failed     string
	attributes []attribute.KeyValue
}

// rollout is what a revision records of its present rollout. One that is activated again is rolled out once more.
type rollout struct {
	set   corev1alpha1.GenericObjectSet
	key   string
	begin time.Time
	// first means that the revision was not activated again.
	first    bool
	complete bool
	end      time.Time
}

// of reads the present rollout of a revision.
func of(set corev1alpha1.GenericObjectSet) rollout {
	status := set.ObjectSetStatus()
	r := rollout{set: set, key: nameRollout, begin: set.GetCreationTimestamp().Time, first: true}
	if changed := changedAt(set); !changed.IsZero() {
		r.begin = changed
	}
	var opened, ready time.Time
	for _, times := range status.Timeline {
		if times.OpenedAt != nil && opened.IsZero() {
			opened = times.OpenedAt.Time
		}
		if times.ReadyAt != nil && times.ReadyAt.After(ready) {
			ready = times.ReadyAt.Time
		}
	}
	succeeded := meta.FindStatusCondition(status.Conditions, corev1alpha1.ConditionSucceeded)
	if succeeded == nil || succeeded.Status != metav1.ConditionTrue {
		return r
	}
	r.end = later(ready, succeeded.LastTransitionTime.Time)
	r.complete = !objectsets.Renumbered(set) && !slices.ContainsFunc(status.Phases, underway)
	if opened.After(succeeded.LastTransitionTime.Add(time.Second)) { // conditions know seconds
		r.key, r.begin, r.first, r.end = fmt.Sprintf("%s %d", nameRollout, opened.UnixMicro()), opened, false, ready
		r.complete = r.complete && !slices.ContainsFunc(status.Timeline, func(times corev1alpha1.PhaseTimes) bool { return times.ReadyAt == nil })
	}
	return r
}

// underway reports whether a phase is still rolled out.
func underway(phase corev1alpha1.PhaseStatus) bool {
	return phase.State == corev1alpha1.PhaseStateWaiting || phase.State == corev1alpha1.PhaseStateApplying || phase.State == corev1alpha1.PhaseStateProbing
}

// span returns that of the rollout itself.
func (r *rollout) span() span { return span{name: nameRollout, key: r.key, start: r.begin, end: r.end} }

// spans returns those that have ended.
func (r *rollout) spans() []span {
	var spans []span
	created, status := r.set.GetCreationTimestamp().Time, r.set.ObjectSetStatus()
	if r.first {
		if changed := changedAt(r.set); !changed.IsZero() {
			spans = append(spans, span{name: nameLoad, key: nameLoad, parent: r.key, start: changed, end: created})
		}
		if end := claimed(status); !end.IsZero() {
			spans = append(spans, span{name: nameClaim, key: nameClaim, parent: r.key, start: created, end: end})
		}
	}
	for i := range status.Timeline {
		spans = append(spans, r.phase(i, &status.Timeline[i])...)
	}
	if r.complete {
		spans = append(spans, r.span())
	}
	return spans
}

// phase returns the spans of a phase that was ready.
func (r *rollout) phase(i int, times *corev1alpha1.PhaseTimes) []span {
	if times.OpenedAt == nil || times.ReadyAt == nil {
		return nil
	}
	key := fmt.Sprintf("%s %d %d", namePhase, i, times.OpenedAt.UnixMicro())
	named := []attribute.KeyValue{text("lockstep.phase", times.Name)}
	spans := []span{{name: namePhase, key: key, parent: r.key, start: times.OpenedAt.Time, end: times.ReadyAt.Time, attributes: named}}
	if times.AppliedAt == nil {
		return spans
	}
	waited := named
	if object := objectIn(times.WaitedFor); object != "" {
		waited = append(slices.Clone(named), text("lockstep.waited_for", object))
	}
	return append(spans,
		span{name: nameApply, key: nameApply + " " + key, parent: key, start: times.OpenedAt.Time, end: times.AppliedAt.Time, attributes: named},
		span{name: nameWait, key: nameWait + " " + key, parent: key, start: times.AppliedAt.Time, end: times.ReadyAt.Time, attributes: waited})
}

// ended returns the spans that have ended since a revision was seen before; before is nil where it was not.
func ended(before, set corev1alpha1.GenericObjectSet) []span {
	now := of(set)
	spans := now.spans()
	if before == nil {
		return spans
	}
	if !objectsets.Owns(set) { // of history the caches keep little
		spans = nil
	}
	was := of(before)
	known := map[string]bool{}
	for _, s := range was.spans() {
		known[s.key] = true
	}
	spans = slices.DeleteFunc(spans, func(s span) bool { return known[s.key] })
	if objectsets.Owns(before) && !objectsets.Owns(set) {
		spans = append(spans, was.failed("another revision has replaced it, or a user has archived it", archivedAt(set))...)
	}
	return spans
}

// failed returns the span of a rollout that ends without success; none where none has begun.
func (r *rollout) failed(why string, at time.Time) []span {
	if r.complete || objectsets.Unwritten(r.set) {
		return nil
	}
	s := r.span()
	s.end, s.failed = at, why
	return []span{s}
}

// recent reports whether the spans of a revision are exported once more by a new leader: its rollout goes on, or ended just now.
func recent(set corev1alpha1.GenericObjectSet, now time.Time) bool {
	if !objectsets.Owns(set) {
		return false
	}
	r := of(set)
	return !r.complete || now.Sub(r.end) < limits.TraceRepeat
}

// handOver returns the span of a revision that has replaced another one, which controls nothing any more.
func handOver(set, replaced corev1alpha1.GenericObjectSet, at time.Time) span {
	r := of(set)
	return span{
		name: nameHandOver, key: nameHandOver + " " + string(replaced.GetUID()), parent: r.key, start: r.end, end: at,
		attributes: []attribute.KeyValue{attribute.Int64("lockstep.replaced_revision", replaced.ObjectSetSpec().Revision)},
	}
}

// tornDown returns the spans of a revision that is gone, which still controlled objects when its deletion began.
func tornDown(set corev1alpha1.GenericObjectSet, since, at time.Time) []span {
	r := of(set)
	return append(r.failed("it was deleted", later(since, r.begin)), span{name: nameTeardown, key: nameTeardown, parent: r.key, start: since, end: at})
}

// attributesOf are those of all spans of a revision.
func attributesOf(set corev1alpha1.GenericObjectSet) []attribute.KeyValue {
	attributes := []attribute.KeyValue{text("lockstep.object_set", set.GetName()), attribute.Int64("lockstep.revision", set.ObjectSetSpec().Revision)}
	for _, named := range [][2]string{
		{"k8s.namespace.name", set.GetNamespace()},
		{"lockstep.object_deployment", set.GetLabels()[corev1alpha1.ObjectDeploymentLabel]},
		{"lockstep.package", set.GetLabels()[corev1alpha1.PackageLabel]},
		{"lockstep.package_version", set.GetLabels()[corev1alpha1.PackageVersionLabel]},
	} {
		if named[1] != "" {
			attributes = append(attributes, text(named[0], named[1]))
		}
	}
	return attributes
}

// text is an attribute whose value is bounded.
func text(key, value string) attribute.KeyValue { return attribute.String(key, metrics.Bound(value)) }

// objectIn returns the kind and name of the object that a phase waited for, without the message, which may quote the object.
func objectIn(waitedFor string) string {
	object, _, found := strings.Cut(waitedFor, ": ")
	if !found {
		return ""
	}
	return object
}

// claimed returns when all objects were claimed: with that, the first phase was opened, whose time is more precise.
func claimed(status *corev1alpha1.ObjectSetStatus) time.Time {
	condition := meta.FindStatusCondition(status.Conditions, corev1alpha1.ConditionClaimed)
	if condition == nil || condition.Status != metav1.ConditionTrue {
		return time.Time{}
	}
	at := condition.LastTransitionTime.Time
	if len(status.Timeline) > 0 && status.Timeline[0].OpenedAt != nil {
		if opened := status.Timeline[0].OpenedAt.Time; opened.Truncate(time.Second).Equal(at) {
			return opened
		}
	}
	return at
}

// changedAt returns when the Package was changed that the revision was made for; zero where that is not known.
func changedAt(set corev1alpha1.GenericObjectSet) time.Time {
	at, err := time.Parse(time.RFC3339, set.GetAnnotations()[corev1alpha1.ChangedAtAnnotation])
	created := set.GetCreationTimestamp().Time
	if err != nil || at.After(created) || created.Sub(at) > limits.TraceLoad {
		return time.Time{}
	}
	return at
}

// archivedAt returns when a revision controlled nothing any more.
func archivedAt(set corev1alpha1.GenericObjectSet) time.Time {
	condition := meta.FindStatusCondition(*set.StatusConditions(), corev1alpha1.ConditionArchived)
	if condition == nil {
		return time.Time{}
	}
	return condition.LastTransitionTime.Time
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
