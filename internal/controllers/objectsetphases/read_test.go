package objectsetphases

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/mutationcache"
	"lockstep.run/lockstep/test/require"
)

// The remaining objects of a phase are spared for a later revision, unless that one leaves, too.
func TestReplaced(t *testing.T) {
	t.Parallel()
	deleted := ptr.To(metav1.NewTime(time.Unix(1e9, 0)))
	for reason, tc := range map[string]struct {
		phase, set                                  bool // what the later revision has: a phase of the class, objects of the deployment
		phaseDeleted, deploymentDeleted, deployment bool
		elsewhere                                   bool // the class is of another cluster
		want                                        bool
	}{
		"no later revision":                  {deployment: true},
		"a later phase":                      {phase: true, deployment: true, want: true},
		"a later phase that leaves":          {phase: true, phaseDeleted: true, deployment: true},
		"a later set without a phase":        {set: true, deployment: true, want: true},
		"a later set of a deleted package":   {set: true, deployment: true, deploymentDeleted: true},
		"a later phase of a deleted package": {phase: true, deployment: true, deploymentDeleted: true},
		"a later phase of an absent package": {phase: true},
		"a later phase in another cluster":   {phase: true, elsewhere: true, want: true},
	} {
		labels := map[string]string{corev1alpha1.PhaseClassLabel: "default", corev1alpha1.ObjectDeploymentLabel: "shop"}
		me := &corev1alpha1.ObjectSetPhase{
			ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "shop-1-deploy", UID: "phase-1", Labels: labels}, Spec: corev1alpha1.ObjectSetPhaseSpec{Revision: 1},
		}
		all := []client.Object{me}
		if tc.phase {
			later := &corev1alpha1.ObjectSetPhase{
				ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "shop-2-deploy", UID: "phase-2", Labels: labels}, Spec: corev1alpha1.ObjectSetPhaseSpec{Revision: 2},
			}
			if tc.phaseDeleted {
				later.DeletionTimestamp, later.Finalizers = deleted, []string{"a/b"}
			}
			all = append(all, later)
		}
		if tc.set {
			all = append(all, &corev1alpha1.ObjectSet{
				ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "shop-2", UID: "set-2", Labels: labels, OwnerReferences: []metav1.OwnerReference{{
					APIVersion: corev1alpha1.GroupVersion.String(), Kind: "ObjectDeployment", Name: "shop", UID: "shop", Controller: ptr.To(true),
				}}},
				Spec: corev1alpha1.ObjectSetSpec{Revision: 2},
			})
		}
		if tc.deployment {
			deployment := &corev1alpha1.ObjectDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "shop", UID: types.UID("shop")}}
			if tc.deploymentDeleted {
				deployment.DeletionTimestamp, deployment.Finalizers = deleted, []string{"a/b"}
			}
			all = append(all, deployment)
		}
		scheme := runtime.NewScheme()
		require.NoError(t, corev1alpha1.AddToScheme(scheme))
		c := &class{name: "default", reader: fake.NewClientBuilder().WithScheme(scheme).WithObjects(all...).Build(), fresh: mutationcache.NewStore()}
		if tc.elsewhere {
			c.target = &corev1alpha1.TargetReference{}
		}
		of, _, err := c.Relate(t.Context(), me)
		if err != nil || of.Replaced != tc.want || tc.want && of.Successors.Len() == 0 {
			t.Errorf("%s: %+v, %v", reason, of, err)
		}
	}
}
