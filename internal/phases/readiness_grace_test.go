package phases_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/probes"
)

// TestReadinessGrace judges one object every second. want is the number of the observation that
// started its grace period; 0 means none.
func TestReadinessGrace(t *testing.T) {
	t.Parallel()
	type look struct {
		generation int64
		result     probes.Result
		want       int
		after      time.Duration // time since the observation before, in addition to a second
	}

	ready, sick := probes.Result{Status: probes.True}, probes.Result{Status: probes.False, ConditionFalse: true}
	outdated, unseen := probes.Result{Outdated: true}, probes.Result{Unseen: true}
	for _, tc := range []struct {
		name, reason string
		looks        []look
		// replaced is the observation from which on another object has the name.
		replaced int
	}{
		{
			name: "scaled", reason: "its controller has to see the generation, and then to act on it",
			looks: []look{{1, ready, 0, 0}, {2, outdated, 2, 0}, {2, sick, 2, 0}, {2, ready, 2, 0}, {2, ready, 0, limits.ReadinessGrace}, {2, sick, 0, 0}},
		},
		{
			name: "passes too early", reason: "a controller reports a generation that it has not acted on yet",
			looks: []look{{1, ready, 0, 0}, {2, ready, 2, 0}, {2, sick, 2, 0}, {2, ready, 2, 0}},
		},
		{
			name: "changed once it is well again", reason: "each generation has its time",
			looks: []look{{1, ready, 0, 0}, {2, ready, 2, 0}, {3, sick, 3, 0}, {4, sick, 3, 0}},
		},
		{
			name: "never well again", reason: "its time is not renewed by any change",
			looks: []look{{1, ready, 0, 0}, {2, sick, 2, 0}, {3, sick, 2, limits.ReadinessGrace}, {4, outdated, 2, 0}, {4, ready, 0, 0}},
		},
		{
			name: "changed again and again", reason: "the time runs from the first generation that it did not pass at",
			looks: []look{{1, ready, 0, 0}, {2, outdated, 2, 0}, {3, outdated, 2, 0}, {4, sick, 2, 0}, {5, outdated, 2, 0}},
		},
		{
			name: "fails", reason: "no other generation explains it", looks: []look{{1, ready, 0, 0}, {1, sick, 0, 0}},
		},
		{
			name: "failed before", reason: "another generation does not make the object ready",
			looks: []look{{1, ready, 0, 0}, {1, sick, 0, 0}, {2, outdated, 0, 0}, {2, sick, 0, 0}},
		},
		{
			name: "never passed", reason: "it was not ready before", looks: []look{{1, outdated, 0, 0}, {2, outdated, 0, 0}, {2, sick, 0, 0}},
		},
		{
			name: "our own write", reason: "the watch shows it soon", looks: []look{{1, ready, 0, 0}, {2, unseen, 2, 0}, {2, outdated, 2, 0}, {2, ready, 2, 0}},
		},
		{
			name: "our own write made it fail", reason: "an object without generations fails when the watch shows it",
			looks: []look{{0, ready, 0, 0}, {0, unseen, 2, 0}, {0, sick, 0, 0}},
		},
		{
			name: "changed back", reason: "it fails at the generation that was fine", looks: []look{{1, ready, 0, 0}, {1, outdated, 2, 0}, {1, sick, 0, 0}},
		},
		{
			name: "recreated", reason: "the ready object was deleted", replaced: 2,
			looks: []look{{1, ready, 0, 0}, {1, unseen, 0, 0}, {1, outdated, 0, 0}},
		},
		{
			name: "recreated in its grace", reason: "the ready object was deleted", replaced: 3,
			looks: []look{{1, ready, 0, 0}, {2, outdated, 2, 0}, {1, outdated, 0, 0}, {1, sick, 0, 0}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var known *phases.ReadinessGrace
			var before phases.Evaluated
			at, began := noon, map[time.Time]int{}
			for i, l := range tc.looks {
				uid := types.UID("first")
				if tc.replaced > 0 && i+1 >= tc.replaced {
					uid = "second"
				}
				now := phases.Evaluated{Object: &objects.Observed{UID: uid, Generation: l.generation}, Result: l.result}
				at = at.Add(time.Second + l.after)
				began[at] = i + 1
				known = phases.NextReadinessGrace(known, before, now, at)
				got := 0
				if known != nil {
					got = began[known.Since]
				}
				if got != l.want {
					t.Errorf("%s: after look %d the object withinGrace since look %d, want %d", tc.reason, i+1, got, l.want)
				}
				if !l.result.Unseen {
					before = now
				}
			}
		})
	}
}
