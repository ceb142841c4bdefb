package statuses

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/test/require"
)

// TestPhaseState checks the durable record of phases: after a restart, a record that all objects of
// a phase are written is believed.
func TestPhaseState(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		old    corev1alpha1.PhaseState
		report phases.PhaseReport
		want   corev1alpha1.PhaseState
	}{
		"begun":             {"both wait for their write", "", phases.PhaseReport{Opened: true, Pending: 2}, corev1alpha1.PhaseStateApplying},
		"refused":           {"no status is pending, and none is written", "", phases.PhaseReport{Opened: true}, corev1alpha1.PhaseStateApplying},
		"one refused":       {"the other one is written", "", phases.PhaseReport{Opened: true, Written: 1, Ready: 1}, corev1alpha1.PhaseStateApplying},
		"written":           {"a probe is not true yet", "", phases.PhaseReport{Opened: true, Written: 2, Ready: 1}, corev1alpha1.PhaseStateProbing},
		"partly taken":      {"a newer revision wrote the other one", "", phases.PhaseReport{Opened: true, Written: 1, Taken: 1}, corev1alpha1.PhaseStateProbing},
		"ready":             {"all probes are true", "", phases.PhaseReport{Opened: true, Written: 2, Ready: 2}, corev1alpha1.PhaseStateReady},
		"refused after all": {"it was ready once", corev1alpha1.PhaseStateReady, phases.PhaseReport{Opened: true, Written: 1, Ready: 1}, corev1alpha1.PhaseStateUnready},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rev := &engine.Revision{Revision: phases.Revision{Phases: []phases.Phase{{Name: "one", Objects: make([]*objects.Desired, 2)}}}}
			rev.Restore(phases.Recorded{Started: 1})
			tc.report.Total = 2
			got := Phases([]corev1alpha1.PhaseStatus{{State: tc.old}}, &phases.Report{Phases: []phases.PhaseReport{tc.report}}, rev)
			require.Equal(t, tc.want, got[0].State, fmt.Sprintf("%s: the phase", tc.reason))
		})
	}
}

// TestArchivedStatus: the remaining conditions are current, however many statuses were written
// between the decision to archive and its end.
func TestArchivedStatus(t *testing.T) {
	t.Parallel()
	set := &corev1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
	conds := set.StatusConditions()
	conditions.Set(conds, 1, corev1alpha1.ConditionSucceeded, true, corev1alpha1.ReasonRolloutSuccess, "The revision was available.")
	conditions.Set(conds, 1, corev1alpha1.ConditionAvailable, true, corev1alpha1.ReasonAvailable, "All objects are available.")
	status := Archived(set)
	for _, c := range status.Conditions {
		require.Equal(t, int64(2), c.ObservedGeneration, fmt.Sprintf("condition %s is of generation", c.Type))
	}
	if !meta.IsStatusConditionTrue(status.Conditions, corev1alpha1.ConditionSucceeded) || meta.FindStatusCondition(status.Conditions, corev1alpha1.ConditionAvailable) != nil {
		t.Errorf("history says %v", status.Conditions)
	}
}

// TestPausedAgents: a revision is paused once all of its agents are, and continues once they do.
func TestPausedAgents(t *testing.T) {
	t.Parallel()
	agent := func(paused bool) objectsets.Agent {
		a := objectsets.Agent{Live: &objects.Observed{}}
		if paused {
			a.Conditions = []metav1.Condition{{Type: corev1alpha1.ConditionPaused, Status: metav1.ConditionTrue}}
		}
		return a
	}
	for name, tc := range map[string]struct {
		paused bool
		agents []objectsets.Agent
		want   metav1.ConditionStatus
	}{
		"no agents":           {true, nil, metav1.ConditionTrue},
		"not paused":          {false, []objectsets.Agent{agent(false)}, ""},
		"all paused":          {true, []objectsets.Agent{agent(true), agent(true)}, metav1.ConditionTrue},
		"one continues":       {true, []objectsets.Agent{agent(true), agent(false)}, metav1.ConditionUnknown},
		"one is still paused": {false, []objectsets.Agent{agent(true), agent(false)}, metav1.ConditionUnknown},
		"one does not exist":  {true, []objectsets.Agent{{}, agent(true)}, metav1.ConditionTrue},
	} {
		var conds []metav1.Condition
		setPaused(&conds, 1, tc.paused, tc.agents)
		got := metav1.ConditionStatus("")
		if len(conds) > 0 {
			got = conds[0].Status
		}
		require.Equal(t, tc.want, got, fmt.Sprintf("%s: Paused", name))
	}
}

// TestInTransition: a list of objects that is too short means a transition, unless it was cut.
func TestInTransition(t *testing.T) {
	t.Parallel()
	refs := func(n int) []corev1alpha1.ControlledObjectReference {
		all := make([]corev1alpha1.ControlledObjectReference, n)
		for i := range all {
			all[i] = corev1alpha1.ControlledObjectReference{Kind: "ConfigMap", Name: "some-longer-name-of-an-object", Namespace: "shop"}
		}
		return all
	}
	for name, tc := range map[string]struct {
		agent objectsets.Agent
		want  bool
	}{
		"all":        {objectsets.Agent{Objects: 2, ControllerOf: refs(2)}, false},
		"one less":   {objectsets.Agent{Objects: 3, ControllerOf: refs(2)}, true},
		"none":       {objectsets.Agent{Objects: 1}, true},
		"a cut list": {objectsets.Agent{Objects: 1000, ControllerOf: refs(150)}, false},
	} {
		require.Equal(t, tc.want, inTransition([]objectsets.Agent{tc.agent}), name)
	}
}

// A status lists ten objects that block: one for each message, and the number of objects with the
// same one.
func TestBlocking(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		messages []string // of the objects, in order
		listed   string   // the messages of the entries, with the number of more objects
	}{
		"few":                      {[]string{"a", "a", "b"}, "a a b"},
		"one message":              {strings.Split(strings.Repeat("a", 300), ""), "a+290 a a a a a a a a a"},
		"another one at the end":   {append(strings.Split(strings.Repeat("a", 12), ""), "b"), "a+3 a a a a a a a a b"},
		"more messages than fit":   {strings.Split("abcdefghijklm", ""), "a b c d e f g h i j"},
		"some of them have others": {strings.Split("abcdefghijklmaab", ""), "a+2 b+1 c d e f g h i j"},
	} {
		var blocking []phases.Blocker
		for i, text := range tc.messages {
			key := objects.Key{Kind: "Service", Namespace: "shop", Name: fmt.Sprint("s", i)}
			blocking = append(blocking, phases.Blocker{Key: key, Phase: "main", Message: fmt.Sprintf("create %s: services %q %s", key, key.Name, text)})
		}
		var listed []string
		for _, b := range Blocking(blocking) {
			text := b.Message[strings.LastIndex(b.Message, " ")+1:]
			if b.More > 0 {
				text += fmt.Sprintf("+%d", b.More)
			}
			listed = append(listed, text)
		}
		require.Equal(t, tc.listed, strings.Join(listed, " "), name)
	}
}

// TestUndecidedClaim: a claim is refused for objects of others, and stays undecided while objects
// could not be looked for. A set that never decided it is deleted without its target.
func TestUndecidedClaim(t *testing.T) {
	t.Parallel()
	for kind, want := range map[phases.BlockKind]bool{phases.BlockCollision: true, phases.BlockRefused: false} {
		rev := &engine.Revision{}
		rev.Refuse(phases.Blocker{Key: objects.Key{Kind: "ConfigMap", Name: "a"}, Kind: kind, Message: "no"})
		var conds []metav1.Condition
		SetConditions(&conds, &corev1alpha1.ObjectSet{}, rev, &phases.Report{}, rev.Refusals, nil)
		if got := meta.FindStatusCondition(conds, corev1alpha1.ConditionClaimed); (got != nil) != want {
			t.Errorf("%v: the claim is %+v", kind, got)
		}
	}
}
