package graph

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/offers"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/kube/summary"
)

// Key identifies a Package, or a ClusterPackage if it has no namespace.
type Key struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// KeyOf returns the key of a package.
func KeyOf(pkg corev1alpha1.GenericPackage) Key { return KeyFor(pkg.GetNamespace(), pkg.GetName()) }

// KeyFor returns the key of a package by its name.
func KeyFor(namespace, name string) Key {
	return Key{Kind: corev1alpha1.ScopeOf(namespace).Kind("Package"), Namespace: namespace, Name: name}
}

// Target is the package as commands name it.
func (k Key) Target() progress.Target { return progress.TargetFor(k.Namespace, k.Name) }

// String returns a text such as "package shop/web" or "clusterpackage cert".
func (k Key) String() string { return k.Target().String() }

// compare orders keys by namespace and name.
func (k Key) compare(o Key) int {
	return cmp.Or(cmp.Compare(k.Namespace, o.Namespace), cmp.Compare(k.Name, o.Name))
}

// Node is an installed package. Its JSON fields are stable.
type Node struct {
	Key

	// Package is the name that others depend on. Version is the one in charge.
	Package string          `json:"package,omitempty"`
	Version string          `json:"version,omitempty"`
	Summary summary.Summary `json:"summary"`

	// Generated means that it was installed because others depend on it.
	Generated    bool   `json:"generated"`
	Dependencies []Edge `json:"dependencies,omitempty"`

	// Dependents are the packages that depend on it.
	Dependents []Key `json:"dependents,omitempty"`
}

// Edge is a dependency of a package. Its JSON fields are stable.
type Edge struct {
	Name     string `json:"name"`
	Optional bool   `json:"optional,omitempty"`

	// Package and Range, or API, are the requirement.
	Package string `json:"package,omitempty"`
	Range   string `json:"range,omitempty"`
	API     string `json:"api,omitempty"`

	// To is the package installed for it; nil for a served API, and for a missing package.
	To        *Key   `json:"to,omitempty"`
	Version   string `json:"version,omitempty"`
	Satisfied bool   `json:"satisfied"`
	Reason    string `json:"reason,omitempty"`
	Message   string `json:"message,omitempty"`
}

// wants is the requirement of an edge, in words.
func (e Edge) wants() string {
	if e.API != "" {
		return "API " + e.API
	}
	return strings.TrimSpace(e.Package + " " + e.Range)
}

// Graph has all installed packages, as far as they were read.
type Graph struct {
	nodes []*Node
	byKey map[Key]*Node
}

// Of returns the Graph of packages.
func Of(packages []corev1alpha1.GenericPackage) *Graph {
	g := &Graph{byKey: map[Key]*Node{}}
	// A list of all namespaces and of one can have the same package twice.
	for _, pkg := range packages {
		n := nodeOf(pkg)
		if g.byKey[n.Key] == nil {
			g.nodes, g.byKey[n.Key] = append(g.nodes, n), n
		}
	}

	slices.SortFunc(g.nodes, func(a, b *Node) int { return a.Key.compare(b.Key) })
	for _, n := range g.nodes {
		for _, e := range n.Dependencies {
			if e.To == nil || *e.To == n.Key {
				continue
			}
			if to := g.byKey[*e.To]; to != nil && !slices.Contains(to.Dependents, n.Key) {
				to.Dependents = append(to.Dependents, n.Key)
			}
		}
	}

	return g
}

// nodeOf returns the node of a package, without its dependents.
func nodeOf(pkg corev1alpha1.GenericPackage) *Node {
	n := &Node{Key: KeyOf(pkg), Generated: pkg.GetLabels()[corev1alpha1.GeneratedLabel] == "true"}
	n.Summary = progress.Of(progress.Snapshot{Target: n.Target(), Package: pkg}).Summary()
	status := pkg.PackageStatus()
	if r := status.Resolved; r != nil {
		n.Package = cmp.Or(r.CatalogName, r.PackageName)
	}
	n.Package, n.Version = cmp.Or(offers.NameOf(pkg), n.Package), status.InstalledVersion()
	for _, d := range status.Dependencies {
		n.Dependencies = append(n.Dependencies, edgeOf(d))
	}

	return n
}

// edgeOf returns the edge for a dependency in the status.
func edgeOf(d corev1alpha1.DependencyStatus) Edge {
	e := Edge{Name: d.Name, Optional: d.Optional, Version: d.Version}
	if d.Package != nil {
		e.Package, e.Range = d.Package.Name, d.Package.Version
	}
	if d.API != nil {
		e.API = d.API.APIVersion + " " + d.API.Kind
	}

	if ref := d.PackageRef; ref != nil {
		to := KeyFor(ref.Namespace, ref.Name)
		e.To = &to
	}
	if c := meta.FindStatusCondition(d.Conditions, corev1alpha1.ConditionSatisfied); c != nil {
		e.Satisfied, e.Reason, e.Message = c.Status == "True", c.Reason, c.Message
	}

	return e
}

// Nodes returns the nodes that keep selects, and their dependencies.
func (g *Graph) Nodes(keep func(*Node) bool) []*Node {
	reached := map[*Node]bool{}
	todo := slices.DeleteFunc(slices.Clone(g.nodes), func(n *Node) bool { return !keep(n) })
	// The search is a loop, because a chain of dependencies can be long.
	for len(todo) > 0 {
		n := todo[0]
		todo = todo[1:]
		if n == nil || reached[n] {
			continue
		}
		reached[n] = true
		for _, e := range n.Dependencies {
			if e.To != nil {
				todo = append(todo, g.byKey[*e.To])
			}
		}
	}

	return slices.DeleteFunc(append([]*Node{}, g.nodes...), func(n *Node) bool { return !reached[n] })
}

// Node returns the node of a package; nil if it was not read.
func (g *Graph) Node(k Key) *Node { return g.byKey[k] }
