package tracing

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
)

var epoch = time.Unix(1_700_000_000, 0).UTC()

func at(seconds float64) *metav1.MicroTime {
	t := metav1.NewMicroTime(epoch.Add(time.Duration(seconds * float64(time.Second))))
	return &t
}

func set(change ...func(*corev1alpha1.ObjectSet)) *corev1alpha1.ObjectSet {
	s := &corev1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{
		Name: "shop-1", Namespace: "team", UID: "6f9619ff-8b86-4d01-b42d-00cf4fc964ff", CreationTimestamp: metav1.NewTime(epoch),
		Annotations: map[string]string{corev1alpha1.ChangedAtAnnotation: epoch.Add(-3 * time.Second).Format(time.RFC3339)},
		Labels:      map[string]string{corev1alpha1.ObjectDeploymentLabel: "shop", corev1alpha1.PackageLabel: "shop"},
	}}
	s.Spec.Revision, s.Status.Revision = 1, 1
	for _, f := range change {
		f(s)
	}
	return s
}

func condition(typ string, status metav1.ConditionStatus, seconds int) func(*corev1alpha1.ObjectSet) {
	return func(s *corev1alpha1.ObjectSet) {
		meta.SetStatusCondition(&s.Status.Conditions, metav1.Condition{
			Type: typ, Status: status, Reason: "Test", LastTransitionTime: metav1.NewTime(epoch.Add(time.Duration(seconds) * time.Second)),
		})
	}
}

func phase(state corev1alpha1.PhaseState, times corev1alpha1.PhaseTimes) func(*corev1alpha1.ObjectSet) {
	return func(s *corev1alpha1.ObjectSet) {
		s.Status.Phases = append(s.Status.Phases, corev1alpha1.PhaseStatus{Name: times.Name, State: state})
		s.Status.Timeline = append(s.Status.Timeline, times)
	}
}

func crds() func(*corev1alpha1.ObjectSet) {
	return phase(corev1alpha1.PhaseStateReady, corev1alpha1.PhaseTimes{Name: "crds", OpenedAt: at(1.5), AppliedAt: at(2), ReadyAt: at(4.25), WaitedFor: "ConfigMap team/a: data.token is s3cret"})
}

func app(state corev1alpha1.PhaseState, ready *metav1.MicroTime) func(*corev1alpha1.ObjectSet) {
	return phase(state, corev1alpha1.PhaseTimes{Name: "app", OpenedAt: at(4.25), AppliedAt: at(5), ReadyAt: ready})
}

// lines writes spans as name, seconds since the creation, and what went wrong.
func lines(spans []span) []string {
	var out []string
	for _, s := range spans {
		line := s.name + " " + s.start.Sub(epoch).String() + " to " + s.end.Sub(epoch).String()
		for _, a := range s.attributes {
			line += " " + a.Value.String()
		}
		if s.failed != "" {
			line += ": " + s.failed
		}
		out = append(out, line)
	}
	return out
}

func TestEnded(t *testing.T) {
	t.Parallel()
	claimed, succeeded := condition(corev1alpha1.ConditionClaimed, metav1.ConditionTrue, 1), condition(corev1alpha1.ConditionSucceeded, metav1.ConditionTrue, 7)
	archived := func(s *corev1alpha1.ObjectSet) { // as the caches keep it
		condition(corev1alpha1.ConditionArchived, metav1.ConditionTrue, 60)(s)
		s.Annotations, s.Status.Phases, s.Status.Timeline = nil, nil, nil
	}
	waiting := set(claimed, crds(), app(corev1alpha1.PhaseStateProbing, nil))
	done := set(claimed, crds(), app(corev1alpha1.PhaseStateReady, at(7.5)), succeeded)
	again := func(state corev1alpha1.PhaseState, times corev1alpha1.PhaseTimes) *corev1alpha1.ObjectSet {
		return set(claimed, phase(state, times), succeeded, func(s *corev1alpha1.ObjectSet) { s.Spec.Revision, s.Status.Revision = 3, 3 })
	}
	for _, test := range []struct {
		reason      string
		before, set *corev1alpha1.ObjectSet
		want        []string
	}{
		{reason: "it was just created", set: set(), want: []string{"load -3s to 0s"}},
		{
			reason: "it was made for another reason than a change of its Package", set: set(func(s *corev1alpha1.ObjectSet) { s.Annotations = nil }),
		},
		{
			reason: "a phase is ready: its claim is as precise as its opening, and no message of the object is in it", before: set(), set: waiting,
			want: []string{"claim 0s to 1.5s", "phase 1.5s to 4.25s crds", "apply 1.5s to 2s crds", "wait 2s to 4.25s crds ConfigMap team/a"},
		},
		{reason: "nothing has ended", before: waiting, set: waiting},
		{
			reason: "it has succeeded", before: waiting, set: done,
			want: []string{"phase 4.25s to 7.5s app", "apply 4.25s to 5s app", "wait 5s to 7.5s app", "rollout -3s to 7.5s"},
		},
		{
			reason: "a phase is not ready any more, which is no rollout", before: done,
			set: set(claimed, crds(), app(corev1alpha1.PhaseStateUnready, at(7.5)), succeeded),
		},
		{reason: "it is history", before: done, set: set(succeeded, archived)},
		{
			reason: "it was replaced before it has succeeded", before: waiting, set: set(archived),
			want: []string{"rollout -3s to 1m0s: another revision has replaced it, or a user has archived it"},
		},
		{reason: "one that awaits its activation is no rollout", before: set(), set: set(archived)},
		{
			reason: "it is about to be activated again", before: done,
			set: set(claimed, crds(), app(corev1alpha1.PhaseStateReady, at(7.5)), succeeded, func(s *corev1alpha1.ObjectSet) { s.Spec.Revision = 3 }),
		},
		{reason: "it is activated again, and has opened no phase", before: done, set: again(corev1alpha1.PhaseStateWaiting, corev1alpha1.PhaseTimes{Name: "crds"})},
		{
			reason: "it was rolled out again", before: again(corev1alpha1.PhaseStateWaiting, corev1alpha1.PhaseTimes{Name: "crds"}),
			set:  again(corev1alpha1.PhaseStateReady, corev1alpha1.PhaseTimes{Name: "crds", OpenedAt: at(100), AppliedAt: at(100), ReadyAt: at(101)}),
			want: []string{"phase 1m40s to 1m41s crds", "apply 1m40s to 1m40s crds", "wait 1m40s to 1m41s crds", "rollout 1m40s to 1m41s"},
		},
	} {
		var before corev1alpha1.GenericObjectSet
		if test.before != nil {
			before = test.before
		}
		if diff := cmp.Diff(test.want, lines(ended(before, test.set))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.reason, diff)
		}
	}
}

func TestHandOverAndTeardown(t *testing.T) {
	t.Parallel()
	claimed, succeeded := condition(corev1alpha1.ConditionClaimed, metav1.ConditionTrue, 1), condition(corev1alpha1.ConditionSucceeded, metav1.ConditionTrue, 5)
	done := set(claimed, crds(), succeeded)
	if got := lines([]span{handOver(done, set(), epoch.Add(time.Minute))}); !cmp.Equal(got, []string{"hand-over 5s to 1m0s 1"}) {
		t.Error(got)
	}
	if got := lines(tornDown(done, epoch.Add(time.Minute), epoch.Add(2*time.Minute))); !cmp.Equal(got, []string{"teardown 1m0s to 2m0s"}) {
		t.Error(got)
	}
	torn := set(claimed, phase(corev1alpha1.PhaseStateGone, done.Status.Timeline[0]), succeeded)
	if got := lines(tornDown(torn, epoch.Add(time.Minute), epoch.Add(2*time.Minute))); !cmp.Equal(got, []string{"teardown 1m0s to 2m0s"}) {
		t.Errorf("a rollout that had succeeded fails at its end: %v", got)
	}
	got := lines(tornDown(set(claimed), epoch.Add(time.Minute), epoch.Add(2*time.Minute)))
	if !cmp.Equal(got, []string{"rollout -3s to 1m0s: it was deleted", "teardown 1m0s to 2m0s"}) {
		t.Error(got)
	}
}

// A new leader exports what the former one may not have: of rollouts that go on, or ended just now.
func TestRecent(t *testing.T) {
	t.Parallel()
	done := set(crds(), condition(corev1alpha1.ConditionSucceeded, metav1.ConditionTrue, 5))
	for _, test := range []struct {
		reason string
		set    *corev1alpha1.ObjectSet
		after  time.Duration
		want   bool
	}{
		{"it goes on", set(crds(), app(corev1alpha1.PhaseStateProbing, nil)), time.Hour, true},
		{"it ended just now", done, limits.TraceRepeat, true},
		{"it ended long ago", done, limits.TraceRepeat + 6*time.Second, false},
		{"it is history", set(condition(corev1alpha1.ConditionArchived, metav1.ConditionTrue, 1)), 0, false},
	} {
		if got := recent(test.set, epoch.Add(test.after)); got != test.want {
			t.Errorf("%s: %t", test.reason, got)
		}
	}
}

// What others write into names and times is bounded.
func TestHostileStatus(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 100_000) + "\xff"
	hostile := set(func(s *corev1alpha1.ObjectSet) {
		s.Annotations[corev1alpha1.ChangedAtAnnotation] = "0001-01-01T00:00:00Z"
		s.Labels[corev1alpha1.PackageLabel] = long
	}, phase(corev1alpha1.PhaseStateReady, corev1alpha1.PhaseTimes{Name: long, OpenedAt: at(-1e9), AppliedAt: at(9e9), ReadyAt: at(-9e9), WaitedFor: long + ": " + long}))
	spans := ended(nil, hostile)
	if len(spans) != 3 {
		t.Fatal(lines(spans))
	}
	for _, s := range spans {
		for _, a := range append(attributesOf(hostile), s.attributes...) {
			if value := a.Value.String(); len(value) > limits.MetricLabelBytes || !utf8.ValidString(value) {
				t.Errorf("%s has %d bytes", a.Key, len(value))
			}
		}
		now := epoch.Add(time.Hour)
		for _, moment := range []time.Time{s.start, s.end} {
			if got := clamp(hostile, moment, now); got.After(now) || got.Before(epoch.Add(-limits.TraceLoad)) {
				t.Errorf("%s at %v", s.name, got)
			}
		}
	}
}

func TestIDs(t *testing.T) {
	t.Parallel()
	if got := traceID("6f9619ff-8b86-4d01-b42d-00cf4fc964ff").String(); got != "6f9619ff8b864d01b42d00cf4fc964ff" {
		t.Error(got)
	}
	for _, uid := range []types.UID{"", "a", "6f9619ff-8b86-4d01-b42d-00cf4fc964ff0"} {
		if id := traceID(uid); !id.IsValid() || id != traceID(uid) {
			t.Errorf("%q: %v", uid, id)
		}
	}
	if spanID("a", "b") == spanID("a", "c") || spanID("a", "b") == spanID("b", "b") {
		t.Error("IDs of spans")
	}
}
