package packages

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// neighbours know which package each Package is an installation of, for those
// that may be installed once. Of two that are loaded at the same time, the one
// that asks first is the one that is installed. It is safe for concurrent use.
type neighbours struct {
	// installed lists all Packages as they are recorded.
	installed func() []corev1alpha1.GenericPackage
	wake      func(types.NamespacedName)

	mu sync.Mutex
	// claims are names of packages that are being loaded, or were, by their
	// Package: their statuses may not say so yet.
	claims map[types.NamespacedName]string
	// met are the others of its name that a Package has found: when one of them
	// goes, it may try again.
	met map[types.NamespacedName]map[types.NamespacedName]struct{}
	// turns counts how often one that was refused may try again.
	turns map[types.NamespacedName]int
}

func newNeighbours(installed func() []corev1alpha1.GenericPackage, wake func(types.NamespacedName)) *neighbours {
	return &neighbours{
		installed: installed, wake: wake, claims: map[types.NamespacedName]string{},
		met: map[types.NamespacedName]map[types.NamespacedName]struct{}{}, turns: map[types.NamespacedName]int{},
	}
}

// of returns the other installations of a package, sorted, and claims the name
// for own. Whether they are in the way is for the caller to say; own is woken
// when one of them goes.
func (n *neighbours) of(own types.NamespacedName, name string) []types.NamespacedName {
	recorded := n.installed()
	n.mu.Lock()
	defer n.mu.Unlock()
	found := map[types.NamespacedName]struct{}{}
	for _, pkg := range recorded {
		if nameOf(pkg) == name {
			found[keyOf(pkg)] = struct{}{}
		}
	}
	for key, claimed := range n.claims {
		if claimed == name {
			found[key] = struct{}{}
		}
	}
	delete(found, own)
	n.claims[own] = name
	if n.met[own] = found; len(found) == 0 {
		delete(n.met, own)
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
}

// turn tells how often a Package may try again.
func (n *neighbours) turn(key types.NamespacedName) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.turns[key]
}

// release gives up the claim of a Package whose load failed. Where it is installed
// under that name it goes on being in the way: two that are refused for each other
// must not wake each other for ever.
func (n *neighbours) release(key types.NamespacedName) {
	recorded := n.installed()
	n.mu.Lock()
	claim := n.claims[key]
	delete(n.claims, key)
	n.mu.Unlock()
	stays := slices.ContainsFunc(recorded, func(pkg corev1alpha1.GenericPackage) bool {
		return keyOf(pkg) == key && nameOf(pkg) == claim
	})
	if !stays {
		n.left(key)
	}
}

// drop forgets a Package that is gone.
func (n *neighbours) drop(key types.NamespacedName) {
	n.mu.Lock()
	delete(n.claims, key)
	delete(n.turns, key)
	delete(n.met, key)
	n.mu.Unlock()
	n.left(key)
}

// left lets those try again that have met key.
func (n *neighbours) left(key types.NamespacedName) {
	n.mu.Lock()
	var waiting []types.NamespacedName
	for other, met := range n.met {
		if _, ok := met[key]; ok {
			n.turns[other]++
			waiting = append(waiting, other)
			delete(n.met, other)
		}
	}
	n.mu.Unlock()
	for _, other := range waiting {
		n.wake(other)
	}
}

// nameOf returns the name of the package that a Package is an installation of;
// empty where it is none yet.
func nameOf(pkg corev1alpha1.GenericPackage) string {
	if resolved := pkg.PackageStatus().Resolved; resolved != nil {
		return resolved.PackageName
	}
	return ""
}
