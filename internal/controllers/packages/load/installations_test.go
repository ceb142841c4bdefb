package load

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/require"
)

// listed is a cache of these Packages.
type listed struct {
	client.Client
	packages *[]corev1alpha1.GenericPackage
	err      error
}

func (l listed) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if l.err != nil {
		return l.err
	}
	if list, ok := list.(*corev1alpha1.PackageList); ok {
		for _, pkg := range *l.packages {
			list.Items = append(list.Items, *pkg.(*corev1alpha1.Package))
		}
	}
	return nil
}

func TestInstallations(t *testing.T) {
	t.Parallel()
	key := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "team", Name: name} }
	installed := func(name, of string) corev1alpha1.GenericPackage {
		pkg := newPackage()
		pkg.Name, pkg.Status.Resolved = name, &corev1alpha1.ResolvedPackage{PackageName: of}
		return pkg
	}
	old := installed("old", "database")
	recorded := []corev1alpha1.GenericPackage{old, installed("other", "web"), newPackage()}
	b := newBench(t)
	b.Cache = listed{packages: &recorded}
	stateOf := func(name string) *Package {
		if b.packages[key(name)] == nil {
			pkg := newPackage()
			pkg.Name = name
			b.Meet(pkg)
		}
		return b.packages[key(name)]
	}
	of := func(name, pkg string) []types.NamespacedName {
		others, err := b.claim(t.Context(), stateOf(name), key(name), pkg)
		require.NoError(t, err)
		return others
	}
	release := func(name string) { b.releaseClaim(stateOf(name), key(name)) }
	woken := func() (names []string) {
		for len(b.woken) > 0 {
			names = append(names, (<-b.woken).Name)
		}
		return names
	}
	expect := func(reason string, got []types.NamespacedName, want ...string) {
		t.Helper()
		var names []string
		for _, k := range got {
			names = append(names, k.Name)
		}
		require.Equal(t, want, names, reason)
	}
	expect("what a status records counts", of("new", "database"), "old")
	expect("oneself does not", of("old", "database"), "new")
	expect("nor other packages", of("new", "cache"))

	expect("the first of two that are loaded together", of("a", "queue"))
	expect("the second", of("b", "queue"), "a")
	before := stateOf("b").retryNumber
	release("a")
	if got := woken(); fmt.Sprint(got) != "[b]" || stateOf("b").retryNumber == before {
		t.Errorf("the first has failed: %v are woken, retry %d", got, stateOf("b").retryNumber)
	}
	expect("its turn", of("b", "queue"))
	expect("the other's again", of("a", "queue"), "b")

	expect("in the way of an installed one", of("c", "database"), "old")
	recorded = nil
	woken()
	b.Forget(client.ObjectKeyFromObject(old))
	if got := woken(); fmt.Sprint(got) != "[c]" {
		t.Errorf("the installed one was deleted: %v are woken", got)
	}
	expect("now it is free", of("c", "database"))

	// Two that were installed before the package became unique refuse each other,
	// and do not enqueue each other forever.
	recorded = []corev1alpha1.GenericPackage{installed("one", "mail"), installed("two", "mail")}
	for range 3 {
		expect("one", of("one", "mail"), "two")
		release("one")
		expect("two", of("two", "mail"), "one")
		release("two")
	}
	if got := woken(); got != nil {
		t.Errorf("no package was deleted, and %v are woken", got)
	}
	b.Forget(key("one"))
	if got := woken(); fmt.Sprint(got) != "[two]" {
		t.Errorf("one was deleted: %v are woken", got)
	}

	// A Package that becomes another package is no longer in the way.
	recorded = []corev1alpha1.GenericPackage{installed("moves", "calendar")}
	b.NoteInstallation(stateOf("moves"), recorded[0])
	expect("before", of("d", "calendar"), "moves")
	recorded = []corev1alpha1.GenericPackage{installed("moves", "clock")}
	b.NoteInstallation(stateOf("moves"), recorded[0])
	if got := woken(); fmt.Sprint(got) != "[d]" {
		t.Errorf("one has become another package: %v are woken", got)
	}
}

// While the Packages cannot be listed, a load must not claim a name: two packages that exclude each
// other would be installed.
func TestClaimOfUnreadPackages(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	stopped := errors.New("the cache has stopped")
	b.Cache = listed{err: stopped}
	if _, err := b.claim(t.Context(), b.of("a"), types.NamespacedName{Namespace: "team", Name: "a"}, "db"); !errors.Is(err, stopped) {
		t.Error("claimed:", err)
	}
}
