package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/probes"
	"lockstep.run/lockstep/test/require"
)

// judged returns a revision whose ConfigMaps have to have the value "true".
func judged(t *testing.T) *Revision {
	t.Helper()
	set, err := probes.Compile([]corev1alpha1.ObjectSetProbe{{
		Selector: corev1alpha1.ProbeSelector{Kind: &corev1alpha1.PackageProbeKindSpec{Kind: "ConfigMap"}},
		Probes:   []corev1alpha1.Probe{{CEL: &corev1alpha1.ProbeCELSpec{Rule: "self.data.ready == 'true'", Message: "not ready"}}},
	}})
	require.NoError(t, err)
	return &Revision{Probes: set, cachedResults: map[objects.Key]cachedResult{}, fieldGenerations: map[schema.GroupKind]uint32{}}
}

func recordOf(ready bool) *objects.Observed {
	return &objects.Observed{Watched: true, Trimmed: fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","data":{"ready":"%t"}}`, ready)}
}

// TestTurn: a pass stops evaluating when its time for probes is up, and the next one
// continues.
func TestTurn(t *testing.T) {
	t.Parallel()
	const each, all = 30 * time.Millisecond, 10
	rev, r := judged(t), New(objects.Owner{Names: apinames.Default, UID: "uid"})
	var clock time.Time
	evaluations := 0
	now := func() time.Time { // is asked before and after each evaluation
		clock = clock.Add(each / 2)
		evaluations++
		return clock
	}
	records := map[objects.Key]*objects.Observed{}
	for i := range all {
		records[keyNamed(fmt.Sprint(i))] = recordOf(true)
	}
	pass := func(most time.Duration) (known int) {
		r.Start(now, most)
		for i := range all {
			key := keyNamed(fmt.Sprint(i))
			switch result := rev.probe(key, records[key], &r.budget); {
			case result.Status == probes.True:
				known++
			case !result.Unseen || !r.ProbeBudgetSpent():
				t.Errorf("object %d is %+v, and the turn is over: %t", i, result, r.ProbeBudgetSpent())
			}
		}
		return known
	}
	for i, want := range []int{4, 8, 10, 10} {
		if got := pass(4 * each / 2); got != want {
			t.Errorf("after pass %d %d objects are judged, want %d", i+1, got, want)
		}
	}
	if r.ProbeBudgetSpent() || evaluations != 2*all {
		t.Errorf("judging %d objects took %d looks at the clock; over: %t", all, evaluations, r.ProbeBudgetSpent())
	}
	for key := range records {
		records[key] = recordOf(true) // a list that shows the same
	}
	if pass(0) != all {
		t.Error("what looks the same is judged again")
	}
	records[keyNamed("3")] = recordOf(false)
	if got := rev.probe(keyNamed("3"), records[keyNamed("3")], &probeBudget{}); got.Status != probes.False {
		t.Errorf("the changed objects are %+v", got)
	}
}

// TestProbesCost: the total cost of judging all objects is limited, and freed when an
// object gets cheaper.
func TestProbesCost(t *testing.T) {
	t.Parallel()
	rev := judged(t)
	first, second := keyNamed("first"), keyNamed("second")
	if got := rev.probe(first, recordOf(true), &probeBudget{}); got.Status != probes.True || rev.cost == 0 {
		t.Fatalf("%+v at a cost of %d", got, rev.cost)
	}
	expensive := rev.cachedResults[first]
	ordinary := expensive.cost
	expensive.cost = limits.ProbesCost
	rev.cachedResults[first], rev.cost = expensive, limits.ProbesCost
	for range 2 {
		got := rev.probe(second, recordOf(true), &probeBudget{})
		if got.Status != probes.Unknown || got.Unseen || !strings.Contains(got.Message(), fmt.Sprintf("cost more than %d", limits.ProbesCost)) {
			t.Errorf("an object beyond the limit is %+v", got)
		}
	}
	if got := rev.probe(first, recordOf(false), &probeBudget{}); got.Status != probes.False || rev.cost != ordinary {
		t.Errorf("one within it is %+v, and all cost %d, want %d", got, rev.cost, ordinary)
	}
	if got := rev.probe(second, recordOf(true), &probeBudget{}); got.Status != probes.True || rev.cost != 2*ordinary {
		t.Errorf("with room for it the other is %+v, and all cost %d, want %d", got, rev.cost, 2*ordinary)
	}
}

// What a revision exposes of Secrets in an object, no message of any revision quotes.
func TestExposedValuesAreNotQuoted(t *testing.T) {
	t.Parallel()
	const password = "correct-horse"
	set, err := probes.Compile([]corev1alpha1.ObjectSetProbe{{
		Selector: corev1alpha1.ProbeSelector{Kind: &corev1alpha1.PackageProbeKindSpec{Kind: "ConfigMap"}},
		Probes:   []corev1alpha1.Probe{{FieldsEqual: &corev1alpha1.ProbeFieldsEqualSpec{FieldA: ".data.v", FieldB: ".kind"}}},
	}})
	require.NoError(t, err)
	key := keyNamed("app")
	revision := func(uid, annotations string) *Revision {
		rev := NewRevision()
		rev.UID, rev.Probes = types.UID(uid), set
		rev.Phases = []phases.Phase{{Objects: []*objects.Desired{{Key: key, Raw: []byte(`{"metadata":{"annotations":{` + annotations + `}}}`)}}}}
		return rev
	}
	obs := &objects.Observed{Watched: true, Trimmed: []byte(`{"apiVersion":"v1","kind":"ConfigMap","data":{"v":"` + password + `"}}`)}
	const exposed = `"` + corev1alpha1.ExposeSecretValuesAnnotation + `":"true"`
	for name, test := range map[string]struct {
		former, latest string
		quotes         bool
	}{"plain": {"", "", true}, "exposed": {"", exposed, false}, "exposed by the former revision": {exposed, "", false}} {
		r := New(objects.Owner{Names: apinames.Default, UID: "uid"})
		r.Put(revision("former", test.former))
		latest := revision("latest", test.latest)
		r.Put(latest)
		result := latest.probe(key, obs, &probeBudget{})
		if text := result.Message(); result.Status != probes.False || strings.Contains(text, password) != test.quotes {
			t.Errorf("%s: the result is %v: %s", name, result.Status, text)
		}
	}
}
