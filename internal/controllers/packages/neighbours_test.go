package packages

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

func TestNeighbours(t *testing.T) {
	t.Parallel()
	key := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "team", Name: name} }
	installed := func(name, of string) corev1alpha1.GenericPackage {
		pkg := newPackage()
		pkg.Name, pkg.Status.Resolved = name, &corev1alpha1.ResolvedPackage{PackageName: of}
		return pkg
	}
	old := installed("old", "database")
	recorded := []corev1alpha1.GenericPackage{old, installed("other", "web"), newPackage()}
	var woken []string
	n := newNeighbours(func() []corev1alpha1.GenericPackage { return recorded }, func(k types.NamespacedName) { woken = append(woken, k.Name) })
	expect := func(reason string, got []types.NamespacedName, want ...string) {
		t.Helper()
		var names []string
		for _, k := range got {
			names = append(names, k.Name)
		}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("%s: %s", reason, diff)
		}
	}
	expect("what a status records counts", n.of(key("new"), "database"), "old")
	expect("oneself does not", n.of(key("old"), "database"), "new")
	expect("nor other packages", n.of(key("new"), "cache"))

	expect("the first of two that are loaded together", n.of(key("a"), "queue"))
	expect("the second", n.of(key("b"), "queue"), "a")
	before := n.turn(key("b"))
	n.release(key("a"))
	if fmt.Sprint(woken) != "[b]" || n.turn(key("b")) == before {
		t.Errorf("the first has failed: %v are woken, turn %d", woken, n.turn(key("b")))
	}
	expect("its turn", n.of(key("b"), "queue"))
	expect("the other's again", n.of(key("a"), "queue"), "b")

	expect("in the way of an installed one", n.of(key("c"), "database"), "old")
	recorded, woken = nil, nil
	n.drop(keyOf(old))
	if fmt.Sprint(woken) != "[c]" {
		t.Errorf("the installed one is gone: %v are woken", woken)
	}
	expect("now it is free", n.of(key("c"), "database"))

	// Two that were installed before the package became unique refuse each other,
	// and do not wake each other for ever.
	recorded, woken = []corev1alpha1.GenericPackage{installed("one", "mail"), installed("two", "mail")}, nil
	for range 3 {
		expect("one", n.of(key("one"), "mail"), "two")
		n.release(key("one"))
		expect("two", n.of(key("two"), "mail"), "one")
		n.release(key("two"))
	}
	if woken != nil {
		t.Errorf("nothing went, and %v are woken", woken)
	}
	n.drop(key("one"))
	if fmt.Sprint(woken) != "[two]" {
		t.Errorf("one is gone: %v are woken", woken)
	}
}
