package clustertest

import (
	"context"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/progress"
)

// Manager represents the engine: it writes statuses of a package until the test ends. It repeats
// them because the fake API server, unlike a real one, loses changes between a list and its watch.
func Manager(t *testing.T, c *cluster.Cluster, target progress.Target, next func(corev1alpha1.GenericPackage) corev1alpha1.PackageStatus) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	t.Cleanup(func() { cancel(); done.Wait() })
	done.Go(func() {
		wait.UntilWithContext(ctx, func(ctx context.Context) {
			if pkg, err := c.Read(ctx, target); err == nil {
				*pkg.PackageStatus() = next(pkg)
				_ = c.Status().Update(ctx, pkg.(client.Object))
			}
		}, 10*time.Millisecond)
	})
}

// InTurn returns one status after the other, and then repeats the last one.
func InTurn(statuses ...corev1alpha1.PackageStatus) func(corev1alpha1.GenericPackage) corev1alpha1.PackageStatus {
	i := -1
	return func(corev1alpha1.GenericPackage) corev1alpha1.PackageStatus {
		i = min(i+1, len(statuses)-1)
		return statuses[i]
	}
}

// Condition returns a condition of the first generation.
func Condition(typ string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: typ, Status: status, Reason: reason, Message: message, ObservedGeneration: 1, LastTransitionTime: metav1.Now()}
}

// Unpacked is true.
var Unpacked = Condition("Unpacked", "True", "UnpackSuccess", "Loaded it.")

// Available is the status of a package that is available.
func Available() corev1alpha1.PackageStatus {
	return corev1alpha1.PackageStatus{
		ObservedGeneration: 1, Revision: 1,
		Conditions: []metav1.Condition{Unpacked, Condition("Available", "True", "Available", ""), Condition("Ready", "True", "Idle", "")},
		Resolved:   &corev1alpha1.ResolvedPackage{PackageName: "web", Version: "1.2.0", Digest: "sha256:abc"},
		Phases:     []corev1alpha1.PhaseStatus{{Name: "deploy", State: "Ready", Ready: 1, Total: 1}},
	}
}

// Blocked is the status of a package that waits for an object.
func Blocked() corev1alpha1.PackageStatus {
	s := Available()
	s.Conditions = []metav1.Condition{Unpacked, Condition("Available", "False", "ObjectSetUnready", "not yet")}
	s.Phases[0].State, s.Phases[0].Ready = "Probing", 0
	s.Blocking = []corev1alpha1.BlockingObject{{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", Phase: "deploy", Message: "no replicas"}}
	return s
}

// Raw is JSON in an object.
func Raw(text string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(text)} }

// Installed is a ClusterPackage with a status.
func Installed(status corev1alpha1.PackageStatus) *corev1alpha1.ClusterPackage {
	pkg := &corev1alpha1.ClusterPackage{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "1", Generation: 1, Finalizers: []string{"package-operator.run/metrics"}}}
	pkg.Spec.Image, pkg.Status = "example.com/web:v1", status
	return pkg
}
