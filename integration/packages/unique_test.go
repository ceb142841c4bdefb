package packages_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// If several Packages of the same package are created at the same time, by image and by
// packageRef, exactly one is installed in each namespace, even if the package claims to be unique
// in the cluster. When that one no longer exists, exactly one other is installed.
func TestUniqueAtOnce(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	other := ns + "-other"
	env.Namespace(t, other)
	files := harness.Phased("unique-"+ns, 1, 1)
	files["manifest.yaml"] += "  constraints:\n  - uniqueInScope: {scope: Cluster}\n"
	image := env.Push(t, "unique-at-once:v1", files)
	var all []*corev1alpha1.Package
	byNamespace := map[string][]*corev1alpha1.Package{}
	for _, in := range []string{ns, other} {
		repository(t, in, "stable", nil).offers(t, "unique.example.com", version("1.0.0", image))
		for i := range 2 {
			byImage := harness.Package(in, fmt.Sprintf("image-%d", i), image)
			byRef := harness.Package(in, fmt.Sprintf("ref-%d", i), "")
			byRef.Spec.PackageRef = &corev1alpha1.PackageReference{Name: "unique.example.com"}
			all = append(all, byImage, byRef)
			byNamespace[in] = append(byNamespace[in], byImage, byRef)
		}
	}
	var created errgroup.Group
	for _, pkg := range all {
		created.Go(func() error { return env.Client.Create(t.Context(), pkg) })
	}
	require.NoError(t, created.Wait())
	for _, in := range []string{ns, other} {
		first := onlyInstalled(t, byNamespace[in])
		require.NoError(t, env.Client.Delete(t.Context(), first))
		env.WaitGone(t, patience, first)
		onlyInstalled(t, slices.DeleteFunc(byNamespace[in], func(pkg *corev1alpha1.Package) bool { return pkg == first }))
	}
}

// onlyInstalled waits until one of the Packages is available and all others are refused because of
// it, and returns it. There is never more than one deployment.
func onlyInstalled(t *testing.T, all []*corev1alpha1.Package) (installed *corev1alpha1.Package) {
	t.Helper()
	harness.Eventually(t, patience, "one to be installed, and the others to be refused", func(ctx context.Context) error {
		var waiting []error
		deployed := 0
		installed = nil
		for _, pkg := range all {
			if err := env.Client.Get(ctx, client.ObjectKeyFromObject(pkg), pkg); err != nil {
				return err
			}
			switch err := env.Client.Get(ctx, client.ObjectKeyFromObject(pkg), &corev1alpha1.ObjectDeployment{}); {
			case err == nil:
				deployed++
				installed = pkg
				waiting = append(waiting, harness.HasCondition(pkg, corev1alpha1.ConditionAvailable, metav1.ConditionTrue, ""))
			case apierrors.IsNotFound(err):
				waiting = append(waiting, harness.HasCondition(pkg, corev1alpha1.ConditionInvalid, metav1.ConditionTrue, corev1alpha1.ReasonConstraintsFailed, "may be installed once in its namespace"))
			default:
				return err
			}
		}
		if deployed > 1 {
			t.Fatalf("%d are deployed", deployed)
		}
		if installed == nil {
			return errors.New("none is installed")
		}
		return errors.Join(waiting...)
	})
	return installed
}
