package packages

import (
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/inputs/targets"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/test/require"
)

// TestTargetStatus: the Package reports why a target cannot be used, and is Stalled if a user has
// to act.
func TestTargetStatus(t *testing.T) {
	t.Parallel()
	away := func(reason string) *targets.State { return &targets.State{Reason: reason, Message: "why"} }
	connected := &targets.State{Ready: true, Reason: corev1alpha1.ReasonTargetConnected, Message: "The target is connected."}
	into := func(p *corev1alpha1.Package) {
		p.Spec.TargetRef = &corev1alpha1.TargetReference{KubeconfigSecretRef: corev1alpha1.KubeconfigSecretReference{Name: "edge"}}
	}
	const unpacked = "Unpacked=True/UnpackSuccess@2"
	applyError := func(generation int64) func(*corev1alpha1.ObjectDeployment) {
		return func(d *corev1alpha1.ObjectDeployment) {
			conditions.Kstatus(&d.Status.Conditions, generation, conditions.State{Stalled: true, Reason: corev1alpha1.ReasonApplyError, Message: "may not list"})
			d.Status.ObservedGeneration = 0
		}
	}
	for name, tc := range map[string]struct {
		state  *targets.State
		dep    *corev1alpha1.ObjectDeployment
		step   step
		reason string
		want   string
	}{
		"missing":                     {state: away(corev1alpha1.ReasonKubeconfigMissing), step: stepGather, want: "Ready=False/KubeconfigMissing@2\nStalled=True/KubeconfigMissing@2\nTargetConnected=False/KubeconfigMissing@2\n" + unpacked},
		"refused":                     {state: away(corev1alpha1.ReasonKubeconfigRefused), step: stepGather, want: "Ready=False/KubeconfigRefused@2\nStalled=True/KubeconfigRefused@2\nTargetConnected=False/KubeconfigRefused@2\n" + unpacked},
		"unauthorized":                {state: away(corev1alpha1.ReasonTargetUnauthorized), step: stepGather, want: "Ready=False/Unauthorized@2\nStalled=True/Unauthorized@2\nTargetConnected=False/Unauthorized@2\n" + unpacked},
		"away":                        {state: away(corev1alpha1.ReasonTargetUnreachable), step: stepGather, want: "Ready=False/Unreachable@2\nReconciling=True/Unreachable@2\nTargetConnected=False/Unreachable@2\n" + unpacked},
		"no object can be read there": {state: connected, step: stepGather, reason: corev1alpha1.ReasonForbidden, want: "Ready=False/Forbidden@2\nStalled=True/Forbidden@2\nTargetConnected=True/Connected@2\n" + unpacked},
		"another cluster": {
			state: connected, step: stepSync,
			dep:  newOwned(reports(corev1alpha1.ConditionTargetConnected, false, corev1alpha1.ReasonOtherCluster), reports(corev1alpha1.ConditionReady, false, corev1alpha1.ReasonOtherCluster), reports(corev1alpha1.ConditionStalled, true, corev1alpha1.ReasonOtherCluster)),
			want: "Ready=False/OtherCluster@2\nStalled=True/OtherCluster@2\nTargetConnected=False/OtherCluster@2\n" + unpacked,
		},
		"connected again": {
			state: connected, step: stepSync, dep: newOwned(rolledOut, described, reports(corev1alpha1.ConditionTargetConnected, false, corev1alpha1.ReasonTargetUnreachable)),
			want: "Available=True/Available@2\nProgressing=False/Idle@2\nReady=True/Available@2\nTargetConnected=True/Connected@2\n" + unpacked,
		},
		"without rights": {
			state: connected, step: stepSync, dep: newOwned(applyError(7)),
			want: "Ready=False/ApplyError@2\nStalled=True/ApplyError@2\nTargetConnected=True/Connected@2\n" + unpacked,
		},
		"an error of an earlier template": {
			state: connected, step: stepSync, dep: newOwned(applyError(6)),
			want: "Ready=False/Progressing@2\nReconciling=True/Progressing@2\nTargetConnected=True/Connected@2\n" + unpacked,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pkg := unpackedPackage(into)
			v := view{pkg: pkg, choice: imageChoice, now: start, inputs: inputs{targetState: tc.state, inputReason: tc.reason}, outcome: outcome{step: tc.step, why: "Waiting for the target. why"}}
			if tc.dep != nil {
				v.dep = tc.dep
			}
			require.Equal(t, tc.want, rendered(statusOf(v).Conditions), "-want +got")
		})
	}
}
