package engines

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/fields"
)

// clockSkew is the maximum difference between the clocks of two machines.
const clockSkew = 5 * time.Minute

// Holder returns the holder of a Lease that has not changed since it was first seen; empty if no
// process leads. The lead is over if the Lease was not renewed for its duration by the local clock,
// or if the time in it is so old that no difference between clocks explains it.
func Holder(lease *coordinationv1.Lease, seen, now time.Time) string {
	if lease.Spec.RenewTime == nil || lease.Spec.LeaseDurationSeconds == nil {
		return ""
	}
	// A fast clock of the holder must not extend the lead, and a slow one must not end it.
	last := lease.Spec.RenewTime.Add(clockSkew)
	if seen.Before(last) {
		last = seen
	}
	if now.After(last.Add(time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second)) {
		return ""
	}
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

// Elsewhere reports engines with our names that run outside the default namespace, where each leads
// by its own Lease, and Jobs that install one.
func Elsewhere(leases []coordinationv1.Lease, managers []appsv1.Deployment, bootstraps []unstructured.Unstructured, now time.Time) (why []string) {
	const here = corev1alpha1.DefaultNamespace
	for i := range leases {
		l := &leases[i]
		if holder := Holder(l, now, now); l.Namespace != here && holder != "" {
			why = append(why, fmt.Sprintf("%s leads by the Lease %s/%s at the same time as the engine in %s: stop it. If ClusterPackage %s starts it again, pause that first",
				holder, l.Namespace, l.Name, here, corev1alpha1.EnginePackage))
		}
	}

	for i := range managers {
		d := &managers[i]
		if d.Namespace != here && ptr.Deref(d.Spec.Replicas, 1) > 0 {
			why = append(why, fmt.Sprintf("Deployment %s in the namespace %s leads at the same time as the engine in %s: kubectl -n %s scale deployment %s --replicas=0",
				d.Name, d.Namespace, here, d.Namespace, d.Name))
		}
	}

	for i := range bootstraps {
		if !ended(&bootstraps[i]) {
			why = append(why, fmt.Sprintf("Job %s/%s installs Package Operator: wait for it, or delete it", bootstraps[i].GetNamespace(), bootstraps[i].GetName()))
		}
	}

	return why
}

// ended reports whether a Job has completed or failed.
func ended(job *unstructured.Unstructured) bool {
	return slices.ContainsFunc(fields.Maps(job.Object, "status", "conditions"), func(condition map[string]any) bool {
		return (condition["type"] == "Complete" || condition["type"] == "Failed") && condition["status"] == string(metav1.ConditionTrue)
	})
}
