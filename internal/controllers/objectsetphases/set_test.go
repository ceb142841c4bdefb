package objectsetphases

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/require"
)

func stored(raw string) []corev1alpha1.ObjectSetObject {
	return []corev1alpha1.ObjectSetObject{{Object: runtime.RawExtension{Raw: []byte(raw)}}}
}

// TestPhaseSet: an ObjectSetPhase is a set with one phase, and its status is stored whole. A status
// that is read again equals the written one, so that it is not written twice.
func TestPhaseSet(t *testing.T) {
	t.Parallel()
	probe := corev1alpha1.ObjectSetProbe{Selector: corev1alpha1.ProbeSelector{Kind: &corev1alpha1.PackageProbeKindSpec{Kind: "ConfigMap"}}}
	phase := &corev1alpha1.ObjectSetPhase{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "deploy", UID: "uid", Generation: 2},
		Spec: corev1alpha1.ObjectSetPhaseSpec{
			Paused: true, Revision: 3, Previous: after("before"), Objects: stored(`{"kind": "ConfigMap"}`), AvailabilityProbes: []corev1alpha1.ObjectSetProbe{probe},
		},
	}
	phase.Annotations = map[string]string{corev1alpha1.ServiceAccountAnnotation: "small"}
	if there := newPhaseSet(phase, &corev1alpha1.TargetReference{}); there.ObjectSetSpec().ServiceAccountName != "" {
		t.Error("an agent writes as an account, not as the user of its kubeconfig")
	}
	set := newPhaseSet(phase, nil)
	want := corev1alpha1.ObjectSetSpec{LifecycleState: corev1alpha1.ObjectSetLifecycleStatePaused, Revision: 3, Previous: after("before")}
	want.Phases = []corev1alpha1.ObjectSetTemplatePhase{{Name: "deploy", Objects: stored(`{"kind": "ConfigMap"}`)}}
	want.ServiceAccountName = "small"
	want.AvailabilityProbes = []corev1alpha1.ObjectSetProbe{probe}
	require.Equal(t, &want, set.ObjectSetSpec(), "its spec")
	require.Equal(t, &corev1alpha1.ObjectSetStatus{}, set.ObjectSetStatus(), "the status of a new one")

	*set.ObjectSetStatus() = corev1alpha1.ObjectSetStatus{
		Conditions: []metav1.Condition{{Type: "Available"}}, ObservedGeneration: 2, Revision: 3,
		Phases:       []corev1alpha1.PhaseStatus{{Name: "deploy", State: corev1alpha1.PhaseStateProbing, Ready: 1, Total: 2}},
		ControllerOf: []corev1alpha1.ControlledObjectReference{{Name: "a"}}, Blocking: []corev1alpha1.BlockingObject{{Name: "a"}},
	}
	copied := set.DeepCopyObject().(*phaseSet)
	set.Flush()
	if phase.Status.State != corev1alpha1.PhaseStateProbing || phase.Status.TotalObjects != 2 {
		t.Errorf("stored as %+v", phase.Status)
	}
	require.Equal(t, set.ObjectSetStatus(), newPhaseSet(phase, nil).ObjectSetStatus(), "read again")
	if set.ObjectSetStatus().Conditions[0].Type = "Changed"; copied.StatusConditions() == nil || (*copied.StatusConditions())[0].Type != "Available" {
		t.Error("a copy shares its status")
	}
	if phase.Status.Conditions[0].Type != "Available" {
		t.Error("the stored status is shared")
	}
}
