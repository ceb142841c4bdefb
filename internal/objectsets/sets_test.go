package objectsets_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/probes"
	"lockstep.run/lockstep/test/require"
)

// revision returns a revision with one object in each phase, of these kinds; the
// kind Probed is probed.
func revision(t *testing.T, kinds ...string) *engine.Revision {
	t.Helper()
	r := &engine.Revision{}
	for _, kind := range kinds {
		r.Phases = append(r.Phases, phaseOf(kind))
	}
	var err error
	r.Probes, err = probes.Compile([]corev1alpha1.ObjectSetProbe{{
		Selector: corev1alpha1.ProbeSelector{Kind: &corev1alpha1.PackageProbeKindSpec{Kind: "Probed"}},
		Probes:   []corev1alpha1.Probe{{CEL: &corev1alpha1.ProbeCELSpec{Rule: "true", Message: "never"}}},
	}})
	require.NoError(t, err)
	r.Probed = sets.New(schema.GroupKind{Kind: "Probed"})
	return r
}

func phaseStates(states ...corev1alpha1.PhaseState) []corev1alpha1.PhaseStatus {
	var all []corev1alpha1.PhaseStatus
	for _, state := range states {
		all = append(all, corev1alpha1.PhaseStatus{State: state})
	}
	return all
}

// TestRestoreFromStatus: which phases are open, and how many of these have not started.
func TestRestoreFromStatus(t *testing.T) {
	t.Parallel()
	claimed := []metav1.Condition{{Type: corev1alpha1.ConditionClaimed, Status: metav1.ConditionTrue}}
	applying, ready, waiting := corev1alpha1.PhaseStateApplying, corev1alpha1.PhaseStateReady, corev1alpha1.PhaseStateWaiting
	for name, tc := range map[string]struct {
		reason        string
		kinds         []string
		set           corev1alpha1.ObjectSet
		pledged       bool
		incomplete    bool
		opened, ahead int
	}{
		"no claim": {reason: "no write is allowed", kinds: []string{"Free", "Free"}},
		"the first one, activated again": {
			reason: "its objects are of an older one by now, until it reaches them", kinds: []string{"Free", "Free"}, opened: 1,
			set: corev1alpha1.ObjectSet{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{corev1alpha1.ObjectDeploymentLabel: "shop"}, Annotations: map[string]string{corev1alpha1.ObjectDeploymentUIDAnnotation: "u"}},
				Spec:       corev1alpha1.ObjectSetSpec{Revision: 3}, Status: corev1alpha1.ObjectSetStatus{Conditions: claimed},
			},
		},
		"claimed": {
			reason: "no probe is needed, so all phases are open", kinds: []string{"Free", "Free", "Free"},
			set: corev1alpha1.ObjectSet{Status: corev1alpha1.ObjectSetStatus{Conditions: claimed, Phases: phaseStates(applying, waiting, waiting)}}, opened: 3, ahead: 2,
		},
		"made with its claim": {reason: "there is no status yet", kinds: []string{"Free", "Free"}, pledged: true, opened: 2, ahead: 1},
		"a probe in the second phase": {
			reason: "the third needs a gate", kinds: []string{"Free", "Probed", "Free"}, pledged: true, opened: 2, ahead: 1,
		},
		"a probe in the first phase": {reason: "the second needs a gate", kinds: []string{"Probed", "Free"}, pledged: true, opened: 1},
		"a later revision": {
			reason: "the older one has the objects until a phase starts", kinds: []string{"Free", "Free"}, pledged: true, opened: 1,
			set: corev1alpha1.ObjectSet{Spec: corev1alpha1.ObjectSetSpec{Previous: []corev1alpha1.PreviousRevisionReference{{Name: "older"}}}},
		},
		"a slice is missing": {
			reason: "its objects can be probed", kinds: []string{"Free", "Free"}, pledged: true, incomplete: true, opened: 1,
		},
		"half way": {
			reason: "the phases that have started by the status", kinds: []string{"Free", "Free", "Free"},
			set: corev1alpha1.ObjectSet{Status: corev1alpha1.ObjectSetStatus{Conditions: claimed, Phases: phaseStates(ready, applying, waiting)}}, opened: 3, ahead: 1,
		},
		"half way, by an earlier engine": {
			reason: "the phase after the reported ones can have been written, and no later one", kinds: []string{"First", "Probed", "Free"}, opened: 2,
			set: corev1alpha1.ObjectSet{Status: corev1alpha1.ObjectSetStatus{ControllerOf: []corev1alpha1.ControlledObjectReference{{Kind: "First", Name: "one"}}}},
		},
		"rolled out by an earlier engine": {
			reason: "it needs no gate any more", kinds: []string{"Probed", "Probed", "Free"}, opened: 3,
			set: corev1alpha1.ObjectSet{Status: corev1alpha1.ObjectSetStatus{Conditions: []metav1.Condition{{Type: corev1alpha1.ConditionSucceeded, Status: metav1.ConditionTrue}}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := revision(t, tc.kinds...)
			if r.ClaimedAtCreation = tc.pledged; tc.incomplete {
				r.MarkIncomplete("a slice is missing")
			}
			for range 2 { // the second time changes nothing
				objectsets.Restore(r, &tc.set, true)
				if r.Opened() != tc.opened || r.Opened()-r.Started() != tc.ahead {
					t.Errorf("%s: %d phases are open, %d of them ahead; want %d and %d", tc.reason, r.Opened(), r.Opened()-r.Started(), tc.opened, tc.ahead)
				}
			}
			if r.Opened() > r.Started() {
				require.NoError(t, r.Open(r.Started()))
				if objectsets.Restore(r, &tc.set, false); r.Opened()-r.Started() != tc.ahead-1 {
					t.Errorf("a started phase is ahead again: %d", r.Opened()-r.Started())
				}
			}
		})
	}
}

// TestClaimedAtCreation: the claim in a status wins over the way a set was created.
func TestClaimedAtCreation(t *testing.T) {
	t.Parallel()
	made := map[string]string{corev1alpha1.ClaimedAnnotation: "true"}
	refused := []metav1.Condition{{Type: corev1alpha1.ConditionClaimed, Status: metav1.ConditionFalse}}
	for name, tc := range map[string]struct {
		annotations map[string]string
		conditions  []metav1.Condition
		want        bool
	}{
		"made with its claim": {annotations: made, want: true},
		"refused since":       {annotations: made, conditions: refused},
		"made without":        {},
	} {
		set := &corev1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}, Status: corev1alpha1.ObjectSetStatus{Conditions: tc.conditions}}
		require.Equal(t, tc.want, objectsets.ClaimedAtCreation(set), name)
	}
}

func phaseOf(kind string) phases.Phase {
	return phases.Phase{Name: kind, Objects: []*objects.Desired{{Key: objects.Key{Kind: kind, Name: "one"}}}}
}

// TestUnwritten: the started phases of a set stay on record until it is archived, also if it is
// activated again and not claimed yet.
func TestUnwritten(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change    func(*corev1alpha1.ObjectSet)
		unwritten bool
	}{
		"it waits":             {change: func(*corev1alpha1.ObjectSet) {}, unwritten: true},
		"activated, unclaimed": {change: func(s *corev1alpha1.ObjectSet) { s.Status.Phases = phaseStates(corev1alpha1.PhaseStateWaiting) }, unwritten: true},
		"activated again": {change: func(s *corev1alpha1.ObjectSet) {
			s.Status.Phases = phaseStates(corev1alpha1.PhaseStateApplying, corev1alpha1.PhaseStateWaiting)
		}},
		"taking objects back": {change: func(s *corev1alpha1.ObjectSet) {
			s.Status.Retained = []corev1alpha1.RetainedObjectReference{{Kind: "Namespace"}}
		}},
		"it reports an object": {change: func(s *corev1alpha1.ObjectSet) {
			s.Status.ControllerOf = []corev1alpha1.ControlledObjectReference{{Kind: "Namespace"}}
		}},
		"it is made with claim": {change: func(s *corev1alpha1.ObjectSet) { s.Annotations[corev1alpha1.ClaimedAnnotation] = "true" }},
	} {
		set := &corev1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{corev1alpha1.AwaitingActivationAnnotation: "true"}}}
		set.Spec.LifecycleState = corev1alpha1.ObjectSetLifecycleStatePaused
		tc.change(set)
		if objectsets.Unwritten(set) != tc.unwritten || objectsets.Waits(set) != tc.unwritten || objectsets.Waiting(set) != tc.unwritten {
			t.Errorf("%s: unwritten %t, waits %t", name, objectsets.Unwritten(set), objectsets.Waits(set))
		}
	}
}

func TestAccountOf(t *testing.T) {
	t.Parallel()
	named := &corev1alpha1.ObjectSetTemplateSpec{ServiceAccountName: "deployer"}
	for _, tc := range []struct {
		spec      *corev1alpha1.ObjectSetTemplateSpec
		namespace string
		want      objects.Account
	}{
		{&corev1alpha1.ObjectSetTemplateSpec{}, "shop", objects.Account{}},
		{&corev1alpha1.ObjectSetTemplateSpec{}, "", objects.Account{}},
		{named, "shop", objects.Account{Namespace: "shop", Name: "deployer"}},
		{named, "", objects.Account{Namespace: "system", Name: "deployer"}},
	} {
		require.Equal(t, tc.want, objectsets.AccountOf(tc.spec, tc.namespace, "system"), fmt.Sprintf("%v in %q", tc.spec, tc.namespace))
	}
}
