package engines_test

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/engines"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func lease(namespace, holder string, renewed time.Time) coordinationv1.Lease {
	return coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: corev1alpha1.LeaderElectionLease},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: ptr.To[int32](15), RenewTime: ptr.To(metav1.NewMicroTime(renewed))},
	}
}

// A clock that is ahead does not end a Lease that is renewed, and a clock that is behind does not
// keep a Lease alive.
func TestHolder(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		renewed, seen time.Time
		held          bool
	}{
		"renewed now":                       {noon, noon, true},
		"renewed by a clock a minute ahead": {noon.Add(time.Minute), noon, true},
		"by one a minute behind":            {noon.Add(-time.Minute), noon, true},
		"unchanged for its duration":        {noon.Add(time.Minute), noon.Add(-16 * time.Second), false},
		"unchanged for less":                {noon.Add(-time.Minute), noon.Add(-14 * time.Second), true},
		"an hour ago":                       {noon.Add(-time.Hour), noon, false},
	} {
		l := lease("n", "someone", tc.renewed)
		if got := engines.Holder(&l, tc.seen, noon); (got != "") != tc.held {
			t.Errorf("%s: held by %q", name, got)
		}
	}
	released := lease("n", "", noon)
	if got := engines.Holder(&released, noon, noon) + engines.Holder(&coordinationv1.Lease{}, noon, noon); got != "" {
		t.Errorf("no process holds it: %q", got)
	}
}

// An engine in another namespace leads by another Lease, so it does not count as absent.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	const here = corev1alpha1.DefaultNamespace
	deployment := func(namespace string, replicas *int32) appsv1.Deployment {
		return appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "package-operator-manager"}, Spec: appsv1.DeploymentSpec{Replicas: replicas}}
	}
	job := func(conditions ...any) unstructured.Unstructured {
		return unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"namespace": here, "name": "package-operator-bootstrap"}, "status": map[string]any{"conditions": conditions},
		}}
	}
	condition := func(typ, status string) any { return map[string]any{"type": typ, "status": status} }
	for name, tc := range map[string]struct {
		lease      coordinationv1.Lease
		deployment appsv1.Deployment
		job        unstructured.Unstructured
		says       string
	}{
		"nothing elsewhere": {lease(here, "x", noon), deployment(here, nil), job(condition("Complete", "True")), ""},
		"it leads": {lease("pko", "package-operator-manager-0_1", noon), deployment("pko", ptr.To[int32](0)), job(condition("Failed", "True")),
			"package-operator-manager-0_1 leads by the Lease pko/" + corev1alpha1.LeaderElectionLease},
		"it starts":         {lease("pko", "", noon), deployment("pko", nil), job(condition("Failed", "True")), "kubectl -n pko scale deployment package-operator-manager --replicas=0"},
		"it was there once": {lease("pko", "x", noon.Add(-time.Hour)), deployment("pko", ptr.To[int32](0)), job(condition("Failed", "True")), ""},
		"it is installed":   {lease(here, "x", noon), deployment(here, nil), job(condition("Complete", "False")), "installs Package Operator"},
	} {
		got := strings.Join(engines.Elsewhere([]coordinationv1.Lease{tc.lease}, []appsv1.Deployment{tc.deployment}, []unstructured.Unstructured{tc.job}, noon), "; ")
		if tc.says == "" && got != "" || !strings.Contains(got, tc.says) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
