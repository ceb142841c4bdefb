package objectdeployments

import (
	"math"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
)

// TestActivatedHistoryClaimsAgain: the claim with which a set was made is not that of its activation from history.
func TestActivatedHistoryClaimsAgain(t *testing.T) {
	t.Parallel()
	for _, archived := range []bool{false, true} {
		server := fake.NewClientBuilder().WithScheme(newScheme(t)).
			WithIndex(&corev1alpha1.ObjectSet{}, ownerIndex, func(client.Object) []string { return []string{"ObjectDeployment shop/shop"} }).Build()
		s := reconciliationOf(server, server)
		made, err := s.newSet(1)
		if err != nil {
			t.Fatal(err)
		}
		set := made.(*corev1alpha1.ObjectSet)
		set.Annotations[corev1alpha1.ClaimedAnnotation] = "true"
		if archived {
			set.Spec.LifecycleState = corev1alpha1.ObjectSetLifecycleStateArchived
			meta.SetStatusCondition(&set.Status.Conditions, metav1.Condition{Type: corev1alpha1.ConditionArchived, Status: "True", Reason: "Archived"})
		}
		if err := server.Create(t.Context(), set); err != nil {
			t.Fatal(err)
		}
		s.sets = []corev1alpha1.GenericObjectSet{set}
		if _, err := s.activate(t.Context(), set, 0); err != nil {
			t.Fatal(err)
		}
		got := &corev1alpha1.ObjectSet{}
		if err := server.Get(t.Context(), client.ObjectKeyFromObject(set), got); err != nil {
			t.Fatal(err)
		}
		if claimed := got.Annotations[corev1alpha1.ClaimedAnnotation] != ""; claimed == archived || got.Spec.Revision != 2 {
			t.Errorf("archived: %t: the set says that it is claimed: %t, and has number %d", archived, claimed, got.Spec.Revision)
		}
	}
}

// TestLastNumber: where no later revision can have a higher number, an error says so.
func TestLastNumber(t *testing.T) {
	t.Parallel()
	s := reconciliationOf(nil, nil)
	set, err := s.newSet(math.MaxInt64)
	if err != nil {
		t.Fatal(err)
	}
	s.sets = []corev1alpha1.GenericObjectSet{set}
	if _, err := s.revisionState(); err == nil || !strings.Contains(err.Error(), "spec.revision of ObjectSet "+set.GetName()) {
		t.Errorf("revisionState: %v", err)
	}
	set.SetDeletionTimestamp(&metav1.Time{})
	if _, err := s.revisionState(); err != nil {
		t.Errorf("it is being deleted: %v", err)
	}
}

// TestLongRetryValue: a value that a status cannot have ends no rejection, and keeps none from being recorded.
func TestLongRetryValue(t *testing.T) {
	t.Parallel()
	s := reconciliationOf(nil, nil)
	s.deployment.SetAnnotations(map[string]string{corev1alpha1.RetryAnnotation: strings.Repeat("x", limits.RetryValue+1)})
	s.deployment.ObjectDeploymentStatus().Rejected = []corev1alpha1.RejectedContent{{TemplateHash: "h"}}
	if !s.rejected(content{hash: "h"}) {
		t.Error("a value that is too long ended a rejection")
	}
}

// TestRollbackMessage: what a user rejected is not said to have missed its deadline, and the other way round.
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
}
