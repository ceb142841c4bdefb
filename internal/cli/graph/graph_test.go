package graph_test

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/graph"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/test/golden"
)

// installed returns a package "namespace/name", or "name" for a ClusterPackage, in a version, with
// dependencies as "name=namespace/name", or "name=" for a missing one.
func installed(at, what, version string, generated bool, needs ...string) corev1alpha1.GenericPackage {
	namespace, name := split(at)
	pkg := corev1alpha1.ScopeOf(namespace).NewPackage()
	pkg.SetNamespace(namespace)
	pkg.SetName(name)
	pkg.SetGeneration(1)
	if generated {
		pkg.SetLabels(map[string]string{corev1alpha1.GeneratedLabel: "true"})
	}
	status := pkg.PackageStatus()
	status.ObservedGeneration, status.CurrentVersion = 1, version
	status.Conditions = []metav1.Condition{
		{Type: corev1alpha1.ConditionAvailable, Status: "True", ObservedGeneration: 1}, {Type: corev1alpha1.ConditionReady, Status: "True", ObservedGeneration: 1},
	}
	status.Resolved = &corev1alpha1.ResolvedPackage{CatalogName: what, Version: "9.0.0", Image: "registry.example/" + what, Digest: "sha256:" + version}
	for _, need := range needs {
		dep, to, _ := strings.Cut(need, "=")
		d := corev1alpha1.DependencyStatus{Dependency: corev1alpha1.Dependency{Name: dep, Package: &corev1alpha1.DependencyPackage{Name: dep + ".example.com"}}}
		d.Package.Version = ">=1"
		c := metav1.Condition{Type: corev1alpha1.ConditionSatisfied, Status: "True", Reason: corev1alpha1.ReasonInstalledByThisPackage}
		if to == "" {
			c.Status, c.Reason, c.Message = "False", corev1alpha1.ReasonUnknownPackage, "No repository offers it."
		} else {
			namespace, name := split(to)
			d.Version, d.PackageRef = "1.0.0", &corev1alpha1.DependencyReference{Kind: corev1alpha1.ScopeOf(namespace).Kind("Package"), Namespace: namespace, Name: name}
		}
		d.Conditions = []metav1.Condition{c}
		status.Dependencies = append(status.Dependencies, d)
	}
	return pkg
}

func split(at string) (namespace, name string) {
	if namespace, name, ok := strings.Cut(at, "/"); ok {
		return namespace, name
	}
	return "", at
}

// shops returns a diamond with a chain below, a missing dependency, a cycle, an API, and an
// unneeded package.
func shops() []corev1alpha1.GenericPackage {
	shop := installed("shop/shop", "shop.example.com", "2.0.0", false, "cache=shop/shop.cache", "db=shop/shop.db", "mail=")
	status := shop.PackageStatus()
	status.Dependencies[2].Optional = true
	status.Dependencies = append(status.Dependencies, corev1alpha1.DependencyStatus{
		Dependency: corev1alpha1.Dependency{Name: "routes", API: &corev1alpha1.DependencyAPI{APIVersion: "gateway.example.com/v1", Kind: "Route"}},
		Conditions: []metav1.Condition{{Type: corev1alpha1.ConditionSatisfied, Status: "True", Reason: corev1alpha1.ReasonAPIServed}},
	})
	lost := installed("shop/old.db", "db.example.com", "0.9.0", true)
	return []corev1alpha1.GenericPackage{
		installed("certs", "certs.example.com", "1.2.0", false), shop, lost,
		installed("shop/shop.db", "db.example.com", "1.0.0", true, "certs=certs"),
		installed("shop/shop.cache", "cache.example.com", "1.1.0", true, "db=shop/shop.db"),
		installed("other/a", "a.example.com", "1.0.0", false, "b=other/b"),
		installed("other/b", "b.example.com", "1.0.0", true, "a=other/a", "gone=other/gone"),
	}
}

func everything(*graph.Node) bool { return true }

func in(namespace string) func(*graph.Node) bool {
	return func(n *graph.Node) bool { return n.Namespace == namespace }
}

// Texts do not depend on the order of the packages.
func TestTexts(t *testing.T) {
	t.Parallel()
	packages := shops()
	for range 20 {
		rand.Shuffle(len(packages), func(i, j int) { packages[i], packages[j] = packages[j], packages[i] })
		g := graph.Of(packages)
		golden.Text(t, "testdata/tree.txt", g.Tree(g.Nodes(everything), terminal.Plain()))
		golden.Text(t, "testdata/tree-shop.txt", g.Tree(g.Nodes(in("shop")), terminal.Plain()))
		golden.Text(t, "testdata/tree-cache.txt", g.TreeOf(g.Node(key("shop/shop.cache")), terminal.Plain()))
		var whys strings.Builder
		for _, name := range []string{"certs", "shop/shop", "shop/shop.db", "shop/old.db", "other/a", "other/b"} {
			whys.WriteString(g.Why(g.Node(key(name))).Text(terminal.Plain()))
		}
		golden.Text(t, "testdata/why.txt", whys.String())
	}
}

func key(at string) graph.Key {
	namespace, name := split(at)
	return graph.Key{Kind: corev1alpha1.ScopeOf(namespace).Kind("Package"), Namespace: namespace, Name: name}
}

// For any dependencies, each package is drawn with its dependencies once.
func TestAnyGraph(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		n, names := 1+random.IntN(12), "abcdefghijkl"
		var packages []corev1alpha1.GenericPackage
		edges := 0
		for i := range n {
			var needs []string
			for j := range n {
				if random.IntN(3) == 0 {
					needs = append(needs, names[j:j+1]+"=shop/"+names[j:j+1])
				}
			}
			edges += len(needs)
			packages = append(packages, installed("shop/"+names[i:i+1], "p", "1.0.0", random.IntN(2) == 0, needs...))
		}
		g := graph.Of(packages)
		text := g.Tree(g.Nodes(everything), terminal.Plain())
		if roots := strings.Count("\n"+text, "\npackage "); strings.Count(text, "\n") != roots+edges {
			t.Errorf("seed %d: %d lines of %d roots and %d edges\n%s", seed, strings.Count(text, "\n"), roots, edges, text)
		}
		for _, node := range g.Nodes(everything) {
			if _, err := json.Marshal(g.Why(node)); err != nil {
				t.Error(err)
			}
		}
	}
}
