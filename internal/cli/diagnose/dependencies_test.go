package diagnose

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"context"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/test/require"
)

// awaiting returns a package whose dependencies are not ready: "name=reason: message", with the
// name of a package if the reason is NotAvailable.
func awaiting(name, reason string, needs ...string) *corev1alpha1.Package {
	pkg := &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Generation: 1}}
	var messages []string
	for _, need := range needs {
		dep, rest, _ := strings.Cut(need, "=")
		why, message, _ := strings.Cut(rest, ": ")
		d := corev1alpha1.DependencyStatus{
			Dependency: corev1alpha1.Dependency{Name: dep, Package: &corev1alpha1.DependencyPackage{Name: dep + ".example.com"}},
			Conditions: []metav1.Condition{{Type: corev1alpha1.ConditionSatisfied, Status: "False", Reason: why, Message: message}},
		}
		if why == corev1alpha1.ReasonNotAvailable {
			d.PackageRef = &corev1alpha1.DependencyReference{Kind: "Package", Namespace: "shop", Name: name + "." + dep}
		}
		messages, pkg.Status.Dependencies = append(messages, dep+": "+message), append(pkg.Status.Dependencies, d)
	}
	pkg.Status.ObservedGeneration = 1
	pkg.Status.Conditions = []metav1.Condition{{
		Type: corev1alpha1.ConditionDependenciesReady, Status: "False", Reason: reason, ObservedGeneration: 1, Message: strings.Join(messages, "\n"),
	}}
	return pkg
}

func TestDependencies(t *testing.T) {
	t.Parallel()
	invalid := &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shop.db.tls", Generation: 1}}
	invalid.Status = corev1alpha1.PackageStatus{ObservedGeneration: 1, Conditions: []metav1.Condition{
		{Type: corev1alpha1.ConditionInvalid, Status: "True", ObservedGeneration: 1, Message: "ConfigInvalid: title is missing. Set it."},
	}}
	soon := corev1alpha1.ReasonWaitingForDependencies
	for name, test := range map[string]struct {
		packages              []*corev1alpha1.Package
		object, cause, remedy string
		links                 int
	}{
		"a chain ends at the fault": {
			[]*corev1alpha1.Package{awaiting("shop", soon, "db=NotAvailable: not yet"), awaiting("shop.db", soon, "tls=NotAvailable: not yet"), invalid},
			"package shop/shop.db.tls", "package shop/shop.db.tls: the package cannot be installed as it is: ConfigInvalid: title is missing. Set it.", "Correct it in the package", 5,
		},
		"unsatisfiable ones come first": {
			[]*corev1alpha1.Package{awaiting("shop", "DependenciesUnsatisfied", "db=NotAvailable: not yet", "mail=UnknownPackage: no repository offers mail.example.com")},
			"dependency mail", "mail: no repository offers mail.example.com", "Add a repository that offers it: kubectl package repo add NAME IMAGE -n shop", 3,
		},
		"of another package": {
			[]*corev1alpha1.Package{awaiting("shop", soon, "db=NotAvailable: not yet"), awaiting("shop.db", "DependenciesUnsatisfied", "tls=ManagedByUser: it is missing")},
			"dependency tls", "package shop/shop.db: tls: it is missing", "Install it: kubectl package install tls.example.com -n shop", 4,
		},
		"the remedy of the manager": {
			[]*corev1alpha1.Package{awaiting("shop", "DependenciesUnsatisfied", "db=VersionMismatch: 1.0.0 is installed, >=2 is needed. Upgrade it.")},
			"dependency db", "db: 1.0.0 is installed, >=2 is needed", "Upgrade it.", 2,
		},
		"an override": {
			[]*corev1alpha1.Package{awaiting("shop", "DependenciesUnsatisfied", "db=NoMatchingVersion: nothing fits")},
			"dependency db", "db: nothing fits", `kubectl package upgrade package/shop -n shop --override 'db={"package":{"version":"VERSION"}}'`, 2,
		},
		"an object without the right to read it": {
			[]*corev1alpha1.Package{awaiting("shop", soon, "db=NotAvailable: not yet")},
			"dependency db", "db: not yet", "See: kubectl package explain package/shop.db -n shop", 2,
		},
	} {
		d := explainAll(t, test.packages)
		if d.Object != test.object || d.Cause != test.cause || !strings.Contains(d.Remedy, test.remedy) || len(d.Chain) != test.links {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// The search ends for a cycle of packages that wait for each other, and for a long chain.
func TestDependenciesEnd(t *testing.T) {
	t.Parallel()
	a := awaiting("a", corev1alpha1.ReasonWaitingForDependencies, "b=NotAvailable: not yet")
	b := awaiting("a.b", corev1alpha1.ReasonWaitingForDependencies, "a=NotAvailable: not yet")
	b.Status.Dependencies[0].PackageRef.Name = "a"
	if d := explainAll(t, []*corev1alpha1.Package{a, b}); d.Remedy != "See: kubectl package explain package/a -n shop" || len(d.Chain) != 4 {
		t.Errorf("%+v", d)
	}
	name, long := "a", []*corev1alpha1.Package{}
	for range 2 * dependencyDepth {
		long, name = append(long, awaiting(name, corev1alpha1.ReasonWaitingForDependencies, "a=NotAvailable: not yet")), name+".a"
	}
	if d := explainAll(t, long); len(d.Chain) != 2*dependencyDepth+2 {
		t.Errorf("%d links", len(d.Chain))
	}
}

func explainAll(t *testing.T, packages []*corev1alpha1.Package) *Diagnosis {
	t.Helper()
	read := func(_ context.Context, target progress.Target) (progress.Snapshot, corev1alpha1.GenericObjectDeployment, error) {
		for _, p := range packages {
			if p.Name == target.Name {
				return progress.Snapshot{Target: target, Package: p}, nil, nil
			}
		}
		return progress.Snapshot{Target: target}, nil, nil
	}
	target := progress.Target{Scope: corev1alpha1.ScopeNamespaced, Namespace: "shop", Name: packages[0].Name}
	d, err := Explain(t.Context(), nil, progress.Snapshot{Target: target, Package: packages[0]}, nil, read, nil)
	require.NoError(t, err)
	return d
}
