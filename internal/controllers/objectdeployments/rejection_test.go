package objectdeployments

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/objectdeployments/activation"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

// TestActivatedHistoryClaimsAgain: an activation from history does not reuse the claim that the set
// was created with.
func TestActivatedHistoryClaimsAgain(t *testing.T) {
	t.Parallel()
	for _, archived := range []bool{false, true} {
		server := fake.NewClientBuilder().WithScheme(newScheme(t)).
			WithIndex(&corev1alpha1.ObjectSet{}, ownerIndex, func(client.Object) []string { return []string{"ObjectDeployment shop/shop"} }).Build()
		s := reconciliationOf(server, server)
		made, err := s.newSet(1)
		require.NoError(t, err)
		set := made.(*corev1alpha1.ObjectSet)
		set.Annotations[corev1alpha1.ClaimedAnnotation] = "true"
		if archived {
			set.Spec.LifecycleState = corev1alpha1.ObjectSetLifecycleStateArchived
			meta.SetStatusCondition(&set.Status.Conditions, metav1.Condition{Type: corev1alpha1.ConditionArchived, Status: "True", Reason: "Archived"})
		}
		require.NoError(t, server.Create(t.Context(), set))
		s.sets = []corev1alpha1.GenericObjectSet{set}
		if _, err := s.activate(t.Context(), set, 0); err != nil {
			t.Fatal(err)
		}
		got := &corev1alpha1.ObjectSet{}
		require.NoError(t, server.Get(t.Context(), client.ObjectKeyFromObject(set), got))
		if claimed := got.Annotations[corev1alpha1.ClaimedAnnotation] != ""; claimed == archived || got.Spec.Revision != 2 {
			t.Errorf("archived: %t: the set has Claimed: %t, and the number %d", archived, claimed, got.Spec.Revision)
		}
	}
}

// TestLastNumber: if no later revision can have a higher number, an error reports it.
func TestLastNumber(t *testing.T) {
	t.Parallel()
	s := reconciliationOf(nil, nil)
	set, err := s.newSet(math.MaxInt64)
	require.NoError(t, err)
	s.sets = []corev1alpha1.GenericObjectSet{set}
	if _, err := s.revisionState(); err == nil || !strings.Contains(err.Error(), "spec.revision of ObjectSet "+set.GetName()) {
		t.Errorf("revisionState: %v", err)
	}
	set.SetDeletionTimestamp(&metav1.Time{})
	if _, err := s.revisionState(); err != nil {
		t.Errorf("it is being deleted: %v", err)
	}
}

// TestLongRetryValue: a value that does not fit into a status does not end a rejection, and does
// not prevent one from being recorded.
func TestLongRetryValue(t *testing.T) {
	t.Parallel()
	s := reconciliationOf(nil, nil)
	s.deployment.SetAnnotations(map[string]string{corev1alpha1.RetryAnnotation: strings.Repeat("x", limits.RetryValue+1)})
	s.deployment.ObjectDeploymentStatus().Rejected = []corev1alpha1.RejectedContent{{TemplateHash: "h"}}
	if !s.rejected(activation.Content{Hash: "h"}) {
		t.Error("a value that is too long ended a rejection")
	}
}

// Without a Package, kubectl package retry has no target.
func TestRetryCommand(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]string{
		"Package": "again by kubectl package retry package/shop --namespace shop, or",
		"Other":   "again by kubectl annotate --overwrite objectdeployment/shop --namespace shop package-operator.run/retry=$(date +%s), or",
	} {
		s := reconciliationOf(nil, nil)
		s.current = &corev1alpha1.ObjectSet{}
		s.current.SetAnnotations(map[string]string{corev1alpha1.RolledBackFromAnnotation: "3"})
		s.deployment.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: corev1alpha1.GroupVersion.String(), Kind: kind, Name: "shop", UID: "p", Controller: ptr.To(true)}})
		if _, text := s.rollbackMessage(); !strings.Contains(text, want) {
			t.Errorf("%s: %s", kind, text)
		}
	}
}

// TestRollbackMessage: a rejection by a user is not reported as a missed deadline, and the other
// way round.
func TestRollbackMessage(t *testing.T) {
	t.Parallel()
	s := reconciliationOf(nil, nil)
	s.current = &corev1alpha1.ObjectSet{}
	s.current.ObjectSetSpec().Revision = 4
	failed := &corev1alpha1.ObjectSet{}
	failed.Spec.Revision, failed.Annotations = 3, map[string]string{corev1alpha1.HashAnnotation: "failed"}
	s.sets = []corev1alpha1.GenericObjectSet{failed, s.current}
	s.current.SetAnnotations(map[string]string{corev1alpha1.RolledBackFromAnnotation: "3"})
	for _, reason := range []string{corev1alpha1.ReasonUser, corev1alpha1.ReasonProgressDeadlineExceeded} {
		other := corev1alpha1.ReasonUser
		if reason == other {
			other = corev1alpha1.ReasonProgressDeadlineExceeded
		}
		s.deployment.ObjectDeploymentStatus().Rejected = []corev1alpha1.RejectedContent{{TemplateHash: "failed", Reason: reason}, {TemplateHash: "later", Reason: other}}
		why, text := s.rollbackMessage()
		if missed := strings.Contains(text, "missed its deadline"); why != reason || missed != (reason == corev1alpha1.ReasonProgressDeadlineExceeded) {
			t.Errorf("rejected by %s: %s: %s", reason, why, text)
		}
	}
	s.deployment.ObjectDeploymentStatus().Rejected = []corev1alpha1.RejectedContent{{
		TemplateHash: "failed", Reason: corev1alpha1.ReasonProgressDeadlineExceeded, Message: "Revision 3 missed its deadline: Deployment web: surplus replicas are still there",
	}}
	const want = "Revision 3 missed its deadline: Deployment web: surplus replicas are still there. Revision 4 is in charge in its place. Ask for other content, "
	if _, text := s.rollbackMessage(); !strings.HasPrefix(text, want) {
		t.Error(text)
	}
}

// TestStatefulObjectsOfRollbacks: only a rollback leaves stateful objects. The deletion of the
// deployment does not, and neither does an upgrade away from rejected content. A rollback leaves
// them even if the rejection changes, and also after a restart.
func TestStatefulObjectsOfRollbacks(t *testing.T) {
	t.Parallel()
	rejected := func(s *reconciliation) {
		s.deployment.ObjectDeploymentStatus().Rejected = []corev1alpha1.RejectedContent{{TemplateHash: activation.HashOf(s.sets[1])}}
	}
	rolledBack := func(s *reconciliation) {
		s.sets[0].SetAnnotations(map[string]string{corev1alpha1.RolledBackFromAnnotation: "2"})
	}
	deleted := func(s *reconciliation) { s.deployment.SetDeletionTimestamp(&metav1.Time{Time: s.Now()}) }
	for name, tc := range map[string]struct {
		given []func(*reconciliation)
		left  bool
	}{
		"rejected, and no earlier success":     {given: []func(*reconciliation){rejected}},
		"rejected, and the deployment deleted": {given: []func(*reconciliation){rejected, deleted}},
		"rolled back":                          {given: []func(*reconciliation){rejected, rolledBack}, left: true},
		"rolled back, and the rejection ended": {given: []func(*reconciliation){rolledBack}, left: true},
		"rolled back, and then deleted":        {given: []func(*reconciliation){rejected, rolledBack, deleted}},
		"activated again after it was rolled back": {given: []func(*reconciliation){rolledBack, func(s *reconciliation) {
			s.sets[1].ObjectSetSpec().Revision, s.sets[1].ObjectSetStatus().Revision = 4, 4
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := reconciliationOf(nil, nil)
			s.Target.Cluster = unstarted(t, "http://unused", func(schema.GroupKind) {})
			for i := range int64(2) {
				set, err := s.newSet(i + 1)
				require.NoError(t, err)
				set.SetUID(types.UID(fmt.Sprint("set-", i+1)))
				set.ObjectSetSpec().Phases = []corev1alpha1.ObjectSetTemplatePhase{{Name: "one", Objects: []corev1alpha1.ObjectSetObject{
					{Object: runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"data"}}`)}},
					{Object: runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"data"}}`)}},
				}}}
				s.sets = append(s.sets, set)
			}
			for i := range tc.given { // the loaded revisions remain
				require.NoError(t, s.loadSets(t.Context()))
				tc.given[i](s)
			}
			require.NoError(t, s.loadSets(t.Context()))
			objs := s.revisionOf(s.sets[1]).Phases[0].Objects
			if objs[0].Left != tc.left || objs[1].Left || s.revisionOf(s.sets[0]).Phases[0].Objects[0].Left {
				t.Errorf("the claim is left: %t", objs[0].Left)
			}
		})
	}
}
