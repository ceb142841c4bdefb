package dependencies_test

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// patience is how long a test waits for a condition.
var patience = harness.Patience

type release = harness.Release

var (
	on    = harness.On
	onAPI = harness.OnAPI
)

// of returns the release of a version with dependencies.
func of(version string, needs ...corev1alpha1.Dependency) release {
	return release{Version: version, Needs: needs}
}

// offer replaces the versions of a package that a namespace has.
func offer(t *testing.T, ns, name string, releases ...release) {
	t.Helper()
	env.Offer(t, ns, name, releases...)
}

// wish returns a Package by constraint.
func wish(ns, name, pkg, constraint string, changes ...func(*corev1alpha1.PackageSpec)) *corev1alpha1.Package {
	p := harness.Package(ns, name, "")
	p.Spec.PackageRef = &corev1alpha1.PackageReference{Name: pkg, VersionSelection: corev1alpha1.VersionSelection{Version: constraint}}
	for _, change := range changes {
		change(&p.Spec)
	}
	return p
}

func named(ns, name string) *corev1alpha1.Package {
	return &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
}

// awaitVersion waits until a Package is available in a version.
func awaitVersion(t *testing.T, ns, name, version string) *corev1alpha1.Package {
	t.Helper()
	return await(t, named(ns, name), "has version "+version, func(pkg *corev1alpha1.Package) error {
		if r := pkg.Status.Resolved; r == nil || r.Version != version {
			return fmt.Errorf("resolved %+v, conditions %+v", r, pkg.Status.Conditions)
		}
		return harness.HasCondition(pkg, corev1alpha1.ConditionReady, metav1.ConditionTrue, "")
	})
}

// awaitRefusal waits until the dependencies of a Package are not ready for a reason.
func awaitRefusal(t *testing.T, ns, name, reason string, texts ...string) *corev1alpha1.Package {
	t.Helper()
	return await(t, named(ns, name), "is refused", func(pkg *corev1alpha1.Package) error {
		return harness.HasCondition(pkg, corev1alpha1.ConditionDependenciesReady, metav1.ConditionFalse, reason, texts...)
	})
}

// dependency returns the state of a dependency as "reason version kind/name".
func dependency(pkg *corev1alpha1.Package, name string) string {
	for _, d := range pkg.Status.Dependencies {
		if d.Name != name {
			continue
		}
		text := ""
		if c := meta.FindStatusCondition(d.Conditions, corev1alpha1.ConditionSatisfied); c != nil {
			text = c.Reason
		}
		if d.Version != "" {
			text += " " + d.Version
		}
		if d.PackageRef != nil {
			text += " " + d.PackageRef.Kind + "/" + d.PackageRef.Name
		}
		return text
	}
	return "none"
}

// packages returns the names of the Packages of a namespace with their versions, sorted.
func packages(t *testing.T, ns string) []string {
	t.Helper()
	list := &corev1alpha1.PackageList{}
	require.NoError(t, env.Client.List(t.Context(), list, client.InNamespace(ns)))
	names := []string{}
	for _, pkg := range list.Items {
		version := ""
		if pkg.Status.Resolved != nil {
			version = pkg.Status.Resolved.Version
		}
		names = append(names, pkg.Name+"="+version)
	}
	slices.Sort(names)
	return names
}

// await reads obj again and again until check returns nil.
func await[T client.Object](t *testing.T, obj T, what string, check func(T) error) T {
	t.Helper()
	return harness.Await(t, env, patience, obj, what, check)
}
