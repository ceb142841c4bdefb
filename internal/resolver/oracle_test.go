package resolver_test

import (
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/Masterminds/semver/v3"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/resolver"
)

// oracle resolves by trying everything in the order of doc.go, one choice after the other, with
// plain recursion. It requires that no dependent in its input depends on a package twice.
type oracle struct {
	resolver.Input
	offers resolver.Offers
	// existing are the installed instances except the roots, roots are the roots; both by namespace
	// and name.
	existing, roots []*node
	created         map[[2]string]*node // by namespace and package
	led             map[[2]string]bool  // everything that the roots can lead to, by the same key
	// choice is the version of each instance. Optional requirements are "instance handle".
	choice   map[*node]string
	optional map[string]bool
	// known caches demands and values caches versions.
	known  map[chosen][]demand
	values map[*node][]string
}

type chosen struct {
	*node
	version string
}

// node is an existing instance, or one that can be created for the packages of a namespace.
type node struct {
	namespace, name string // of the package
	installed       *resolver.Installed
	root            *resolver.Root
}

func (n *node) String() string {
	switch {
	case n.root != nil:
		return n.root.String()
	case n.installed != nil:
		return n.installed.String()
	}
	return "new " + n.namespace + " " + n.name
}

func newOracle(in resolver.Input) *oracle {
	o := &oracle{
		Input: in, offers: in.Catalogue.(resolver.Offers), created: map[[2]string]*node{}, led: map[[2]string]bool{},
		choice: map[*node]string{}, optional: map[string]bool{}, known: map[chosen][]demand{}, values: map[*node][]string{},
	}

	for i := range in.Roots {
		r := &in.Roots[i]
		o.roots = append(o.roots, &node{namespace: r.Namespace, name: r.Package, root: r})
	}

	for i := range in.Installed {
		at := &in.Installed[i]
		if k := slices.IndexFunc(o.roots, func(n *node) bool { return n.root.Instance == at.Instance }); k >= 0 {
			o.roots[k].installed = at
		} else {
			o.existing = append(o.existing, &node{namespace: at.Namespace, name: at.Package, installed: at})
		}
	}

	sort.Slice(o.roots, func(a, b int) bool { return o.roots[a].root.Compare(o.roots[b].root.Instance) < 0 })
	sort.Slice(o.existing, func(a, b int) bool { return o.existing[a].installed.Compare(o.existing[b].installed.Instance) < 0 })
	for _, r := range o.roots {
		o.choice[r] = versionsOf(r.root)[0].Version
		for _, v := range versionsOf(r.root) {
			for _, d := range v.Dependencies {
				o.lead(r.namespace, d.Package.Name)
			}
		}
	}

	return o
}

// versionsOf returns the versions that a root can have, starting with the preferred one.
func versionsOf(r *resolver.Root) []resolver.RootVersion {
	if len(r.Versions) > 0 {
		return r.Versions
	}
	return []resolver.RootVersion{{Version: r.Version, Dependencies: r.Dependencies}}
}

var ranges sync.Map

func inRange(text, version string) bool {
	if text == "" {
		return true
	}
	if fits, ok := ranges.Load([2]string{text, version}); ok {
		return fits.(bool)
	}
	c, err := semver.NewConstraint(text)
	fits := err == nil && c.Check(semver.MustParse(version))
	ranges.Store([2]string{text, version}, fits)
	return fits
}

// sees reports whether packages of a namespace can use an instance.
func sees(namespace string, n *node) bool {
	return n.namespace == namespace || n.namespace == ""
}

// heeds reports whether requirements of packages in a namespace count for an instance.
func heeds(n *node, namespace string) bool {
	return n.namespace == namespace || n.namespace == "" && n.installed.AllDependents
}

// lead marks everything that a dependency in a namespace can lead to.
func (o *oracle) lead(namespace, name string) {
	if o.led[[2]string{namespace, name}] {
		return
	}

	o.led[[2]string{namespace, name}] = true
	spaces := []string{namespace}
	for _, n := range o.existing {
		if n.name == name && sees(namespace, n) {
			spaces = append(spaces, n.namespace)
			for _, r := range n.installed.Requirements {
				o.lead(n.namespace, r.Package.Name)
			}
		}
	}

	for _, space := range spaces {
		for _, v := range o.offers[name] {
			for _, d := range v.Dependencies {
				if inScope(v, space) {
					o.lead(space, d.Package.Name)
				}
			}
		}
	}
}

func inScope(v resolver.Offer, namespace string) bool {
	return len(v.Scopes) == 0 || slices.Contains(v.Scopes, corev1alpha1.ScopeOf(namespace))
}

// together reports whether a scope has room for both.
func together(a, b string, unique corev1alpha1.UniqueScope) bool {
	return unique == "" || a != b
}

// versions returns the versions of an instance, starting with the preferred one.
func (o *oracle) versions(n *node) []string {
	if o.values[n] == nil {
		o.values[n] = append([]string{}, o.list(n)...)
	}
	return o.values[n]
}

func (o *oracle) list(n *node) (all []string) {
	for _, v := range o.offers[n.name] {
		fits := inScope(v, n.namespace)
		for _, e := range o.existing {
			if e != n && e.name == n.name && !(together(n.namespace, e.namespace, v.Unique) && together(n.namespace, e.namespace, e.installed.Unique)) {
				fits = false
			}
		}
		if fits {
			all = append(all, v.Version)
		}
	}

	sort.Slice(all, func(a, b int) bool { return semver.MustParse(all[a]).LessThan(semver.MustParse(all[b])) })
	if n.installed == nil {
		slices.Reverse(all)
		return all
	}

	all = slices.DeleteFunc(all, func(v string) bool {
		isForeign := slices.ContainsFunc(o.roots, func(r *node) bool { return !heeds(n, r.namespace) })
		return !n.installed.Changeable || isForeign || n.installed.Deleting || !o.isLed(n) || !semver.MustParse(v).GreaterThan(semver.MustParse(n.installed.Version))
	})
	return append([]string{n.installed.Version}, all...)
}

// isLed reports whether a root can lead to an instance.
func (o *oracle) isLed(n *node) bool {
	for place := range o.led {
		if place[1] == n.name && sees(place[0], n) {
			return true
		}
	}
	return false
}

func (o *oracle) offer(n *node) *resolver.Offer {
	at := slices.IndexFunc(o.offers[n.name], func(v resolver.Offer) bool { return v.Version == o.choice[n] })
	return &o.offers[n.name][at]
}

// stays reports whether an instance keeps its version.
func (o *oracle) stays(n *node) bool {
	return n.root == nil && n.installed != nil && o.choice[n] == n.installed.Version
}

type demand struct {
	of                 *node
	handle, name, want string
	optional           bool
	to                 []*node // the preferred one first
}

// key identifies a demand.
func (d *demand) key() string { return d.of.String() + " " + d.handle }

// demands returns the demands of an instance in its present choice, by handle. If it is installed
// and stays, it returns the recorded ones.
func (o *oracle) demands(n *node) []demand {
	at := chosen{n, o.choice[n]}
	all, ok := o.known[at]
	if !ok {
		all = o.read(n)
		o.known[at] = all
	}
	return all
}

func (o *oracle) read(n *node) (all []demand) {
	var list []corev1alpha1.Dependency
	switch {
	case o.stays(n):
		for _, r := range n.installed.Requirements {
			for _, e := range o.existing {
				if r.Satisfier != nil && *r.Satisfier == e.installed.Instance && heeds(e, n.namespace) && !r.Optional && inRange(r.Package.Version, e.installed.Version) {
					all = append(all, demand{n, r.Name, r.Package.Name, r.Package.Version, false, []*node{e}})
				}
			}
		}
	case n.root != nil:
		for _, v := range versionsOf(n.root) {
			if v.Version == o.choice[n] {
				list = v.Dependencies
			}
		}
	default:
		list = o.offer(n).Dependencies
	}

	for _, d := range list {
		all = append(all, demand{n, d.Name, d.Package.Name, d.Package.Version, d.Optional, o.targets(n, d)})
	}

	sort.Slice(all, func(a, b int) bool { return all[a].handle < all[b].handle })
	return all
}

// targets returns the packages that can satisfy a dependency: the installed ones, or else the one
// that would be created.
func (o *oracle) targets(of *node, d corev1alpha1.Dependency) (all []*node) {
	was, isDeleted := resolver.Instance{}, false
	if of.installed != nil {
		for _, r := range of.installed.Requirements {
			if r.Name == d.Name && r.Satisfier != nil {
				was = *r.Satisfier
			}
		}
	}

	rank := func(n *node) int {
		switch n.namespace {
		case of.namespace:
			return 1
		}
		return 2
	}

	for _, n := range o.existing {
		switch {
		case n.name != d.Package.Name || !sees(of.namespace, n):
		case n.installed.Instance == was:
			all = slices.Insert(all, 0, n)
		case n.installed.Deleting:
			isDeleted = true
		default:
			all = append(all, n)
		}
	}

	sort.SliceStable(all, func(a, b int) bool {
		x, y := all[a], all[b]
		return x.installed.Instance == was || y.installed.Instance != was && rank(x) < rank(y)
	})
	if len(all) > 0 || isDeleted {
		return all
	}

	key := [2]string{of.namespace, d.Package.Name}
	if o.created[key] == nil {
		o.created[key] = &node{namespace: of.namespace, name: d.Package.Name}
	}

	return []*node{o.created[key]}
}

// satisfier returns the node that meets a demand, or nil.
func (o *oracle) satisfier(d *demand) *node {
	for _, n := range d.to {
		if o.choice[n] != "" && inRange(d.want, o.choice[n]) {
			return n
		}
	}
	return nil
}

// solve reports whether there is a solution, and leaves it in choice.
func (o *oracle) solve() bool {
	for _, n := range o.existing {
		o.choice[n] = n.installed.Version
	}
	return o.rooted(o.roots)
}

// rooted chooses the versions of roots.
func (o *oracle) rooted(rest []*node) bool {
	if len(rest) == 0 {
		return o.present(o.existing)
	}
	for _, v := range versionsOf(rest[0].root) {
		o.choice[rest[0]] = v.Version
		if o.rooted(rest[1:]) {
			return true
		}
	}
	return false
}

func (o *oracle) present(rest []*node) bool {
	if len(rest) == 0 {
		return o.keeps() && o.decide()
	}
	n := rest[0]
	for _, v := range o.versions(n) {
		o.choice[n] = v
		if o.present(rest[1:]) {
			return true
		}
	}
	o.choice[n] = n.installed.Version
	return false
}

// keeps reports whether every installed package that stays still has its requirements satisfied.
func (o *oracle) keeps() bool {
	for _, n := range o.existing {
		for _, d := range o.demands(n) {
			if o.stays(n) && o.satisfier(&d) == nil {
				return false
			}
		}
	}
	return true
}

// decide makes the remaining choices.
func (o *oracle) decide() bool {
	w := &way{oracle: o}
	open, ok := w.walk()
	switch {
	case !ok:
		return false
	case open == nil:
		return true
	case open.to == nil:
		for _, takesPart := range []bool{true, false} {
			o.optional[open.key()] = takesPart
			if o.decide() {
				return true
			}
		}
		delete(o.optional, open.key())
		return false
	}

	for _, v := range o.versions(open.to[0]) {
		if !inRange(open.want, v) {
			continue
		}
		o.choice[open.to[0]] = v
		if o.decide() {
			return true
		}
	}

	delete(o.choice, open.to[0])
	return false
}

// solution lists the created and changed packages, and those that satisfy the requirements of the
// roots.
func (o *oracle) solution() string {
	var lines []string
	w := &way{oracle: o}
	w.walk()
	for _, n := range w.order {
		switch {
		case n.root != nil:
			lines = append(lines, n.String()+" "+o.choice[n])
			for _, d := range o.demands(n) {
				if d.optional && !o.optional[d.key()] {
					lines = append(lines, d.key()+": without")
				} else {
					lines = append(lines, d.key()+": "+o.satisfier(&d).String())
				}
			}
		case n.installed == nil || !o.stays(n):
			lines = append(lines, n.String()+" "+o.choice[n])
		}
	}

	sort.Strings(lines)
	return strings.Join(lines, "\n")
}
