package discovery

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// ErrNotReady means that discovery has not succeeded yet.
var ErrNotReady = errors.New("what the API server serves is not known yet")

// ErrUnavailable means that another API server serves the API, and does not answer.
var ErrUnavailable = errors.New("is registered and not available")

// errNoVersion means that a CRD serves none of its versions; objects of the kind can still be
// stored.
var errNoVersion = errors.New("no version in its CustomResourceDefinition is served: serve one again, or delete the CustomResourceDefinition with all that is stored of it")

// Kind is a served kind.
type Kind struct {
	// Versions are the mappings of all served versions, the preferred one first.
	Versions []*meta.RESTMapping
	// Watchable reports whether the preferred version can be listed and watched.
	Watchable bool
	// Terminating means that the kind's CRD is being deleted.
	Terminating bool
	// UID of the kind's CRD; empty for a kind without one.
	UID types.UID
	// Generation of the CRD. The schemas can change with it.
	Generation int64
}

// Preferred returns the mapping of the preferred version.
func (k *Kind) Preferred() *meta.RESTMapping { return k.Versions[0] }

// Namespaced reports whether objects of the kind are in namespaces.
func (k *Kind) Namespaced() bool { return k.Preferred().Scope.Name() == meta.RESTScopeNameNamespace }

func (k *Kind) equal(o *Kind) bool {
	if k == nil || o == nil {
		return k == o
	}
	return k.Watchable == o.Watchable && k.Terminating == o.Terminating && k.UID == o.UID && k.Generation == o.Generation &&
		slices.EqualFunc(k.Versions, o.Versions, func(a, b *meta.RESTMapping) bool {
			return a.Resource == b.Resource && a.Scope.Name() == b.Scope.Name()
		})
}

// index has the kinds that the API server serves: kinds of CRDs by the watch of CRDs, all others by
// discovery.
type index struct {
	mu sync.RWMutex
	// err is the error of the first discovery; nil once it has succeeded.
	err error
	// discovered are the kinds in discovery, including the kinds of CRDs.
	discovered map[schema.GroupKind]*Kind
	// failed are the group versions that discovery could not read.
	failed map[schema.GroupVersion]error
	// byCRD names the kind of each CRD that serves one, and defined has these kinds.
	byCRD   map[string]schema.GroupKind
	defined map[schema.GroupKind]*Kind
	// past are the names of all CRDs so far. Their watch is newer than discovery, except for a
	// group version that another API server serves.
	past map[string]struct{}
	// offered are the group versions of other API servers when discovery was read last.
	offered map[schema.GroupVersion]bool
	// away are the group versions of unavailable APIServices, by their names. Discovery may have
	// been read before it contained them.
	away map[string]schema.GroupVersion
	// back are the groups of those that are available or were removed since discovery was read.
	back map[string]bool
}

func newIndex() *index {
	return &index{
		err: ErrNotReady, discovered: map[schema.GroupKind]*Kind{},
		byCRD: map[string]schema.GroupKind{}, defined: map[schema.GroupKind]*Kind{}, past: map[string]struct{}{}, away: map[string]schema.GroupVersion{}, back: map[string]bool{},
	}
}

// find returns a kind; nil if it is not served. An error means that this is unknown.
func (x *index) find(gk schema.GroupKind) (*Kind, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.err != nil {
		return nil, x.err
	}

	switch k := x.lookup(gk); {
	case k == nil:
		return nil, cmp.Or(failure(x.failed, gk.Group), x.awayFor(gk.Group))
	case len(k.Versions) == 0:
		return nil, fmt.Errorf("the API server does not serve %s: %w", gk, errNoVersion)
	default:
		return k, nil
	}
}

// weight returns the approximate memory of the index.
func (x *index) weight() int64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return int64(len(x.past)+len(x.discovered)+len(x.defined)+len(x.away)) * definitionBytes
}

// failure returns why a group could not be read, or nil.
func failure(failed map[schema.GroupVersion]error, group string) error {
	var first *schema.GroupVersion
	for gv := range failed {
		if gv.Group == group && (first == nil || gv.Version < first.Version) {
			first = &gv
		}
	}

	if first == nil {
		return nil
	}
	return fmt.Errorf("the API %s %w: %w", first, ErrUnavailable, failed[*first])
}

// awayFor returns an error if an API of a group is known to be unavailable. x.mu is held.
func (x *index) awayFor(group string) error {
	for _, name := range slices.Sorted(maps.Keys(x.away)) {
		if gv := x.away[name]; gv.Group == group {
			return fmt.Errorf("the API %s %w: see APIService %s", gv, ErrUnavailable, name)
		}
	}
	return nil
}

// setAway notes that an APIService is not available.
func (x *index) setAway(name string, gv schema.GroupVersion) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.away[name] = gv
}

// endAway forgets unavailable APIServices, and reports whether there were any.
func (x *index) endAway(ended func(name string) bool) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	before := len(x.away)
	maps.DeleteFunc(x.away, func(name string, gv schema.GroupVersion) bool {
		if ended(name) {
			x.back[gv.Group] = true
			return true
		}
		return false
	})
	return len(x.away) < before
}

func (x *index) lookup(gk schema.GroupKind) *Kind {
	if k := x.defined[gk]; k != nil {
		return k
	}
	if k := x.discovered[gk]; k != nil && !x.outdated(k) {
		return k
	}
	return nil
}

// outdated reports whether the watch of CRDs is ahead of discovery.
func (x *index) outdated(k *Kind) bool {
	resource := k.Preferred().Resource
	_, past := x.past[resource.GroupResource().String()]
	return past && !x.offered[resource.GroupVersion()]
}

// mapping returns the mapping of a kind in a version, by default the preferred one.
func (x *index) mapping(gk schema.GroupKind, version string) (*meta.RESTMapping, error) {
	k, err := x.find(gk)
	if err != nil && !errors.Is(err, errNoVersion) {
		return nil, err
	}
	if k != nil {
		for _, m := range k.Versions {
			if version == "" || m.Resource.Version == version {
				return m, nil
			}
		}
	}

	noMatch := &meta.NoKindMatchError{GroupKind: gk}
	if version != "" {
		noMatch.SearchedVersions = []string{version}
	}

	return nil, noMatch
}

// fail records the error of the first discovery.
func (x *index) fail(err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.err != nil {
		x.err = fmt.Errorf("%w: %w", ErrNotReady, err)
	}
}

// discover stores the result of discovery, and the group versions that other API servers offered
// before it was read. It returns the changed kinds, and for each group that failed before or fails
// now whether that changed.
func (x *index) discover(
	found map[schema.GroupKind]*Kind, failed map[schema.GroupVersion]error, offered map[schema.GroupVersion]bool,
) (kinds []schema.GroupKind, groups map[string]bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for gk, old := range x.discovered {
		// A kind that could not be read stays.
		if _, ok := found[gk]; !ok && failed[old.Preferred().Resource.GroupVersion()] != nil && !x.outdated(old) {
			found[gk] = old
		}
	}
	for gv := range failed {
		if x.offered[gv] {
			offered[gv] = true
		}
	}
	before := map[schema.GroupKind]*Kind{}
	for _, all := range []map[schema.GroupKind]*Kind{x.discovered, found} {
		for gk := range all {
			before[gk] = x.lookup(gk)
		}
	}
	groups, x.back = x.back, map[string]bool{}
	for _, all := range []map[schema.GroupVersion]error{x.failed, failed} {
		for gv := range all {
			groups[gv.Group] = groups[gv.Group] || (failure(x.failed, gv.Group) == nil) != (failure(failed, gv.Group) == nil)
		}
	}
	x.discovered, x.failed, x.offered, x.err = found, failed, offered, nil
	return x.changed(before), groups
}

// putCRDs stores CRDs and returns the changed kinds. If all is set, other CRDs no longer exist.
func (x *index) putCRDs(crds []*definition, all bool) []schema.GroupKind {
	x.mu.Lock()
	defer x.mu.Unlock()
	before := map[schema.GroupKind]*Kind{}
	listed := map[string]struct{}{}
	for _, crd := range crds {
		listed[crd.Name], x.past[crd.Name] = struct{}{}, struct{}{}
		gk, kind := crd.kind()
		x.setCRD(crd.Name, gk, kind, before)
	}

	if all {
		for name, gk := range maps.Clone(x.byCRD) {
			if _, ok := listed[name]; !ok {
				x.setCRD(name, gk, nil, before)
			}
		}
	}

	return x.changed(before)
}

// dropCRD forgets a deleted CRD, and returns the kinds that changed.
func (x *index) dropCRD(name string) []schema.GroupKind {
	x.mu.Lock()
	defer x.mu.Unlock()
	before := map[schema.GroupKind]*Kind{}
	x.setCRD(name, x.byCRD[name], nil, before)
	return x.changed(before)
}

// setCRD sets the kind of a CRD, nil for none, and records the previously served kinds in before.
func (x *index) setCRD(name string, gk schema.GroupKind, kind *Kind, before map[schema.GroupKind]*Kind) {
	old, had := x.byCRD[name]
	for _, gk := range []schema.GroupKind{old, gk} {
		if _, noted := before[gk]; !noted {
			before[gk] = x.lookup(gk)
		}
	}

	if had {
		delete(x.defined, old)
		delete(x.byCRD, name)
	}

	if kind != nil {
		x.byCRD[name], x.defined[gk] = gk, kind
	}
}

// changed returns the sorted kinds whose versions or scope differ from before. It returns none
// before the first discovery.
func (x *index) changed(before map[schema.GroupKind]*Kind) []schema.GroupKind {
	var kinds []schema.GroupKind
	for gk, old := range before {
		if x.err == nil && !old.equal(x.lookup(gk)) {
			kinds = append(kinds, gk)
		}
	}
	slices.SortFunc(kinds, func(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) })
	return kinds
}

// serves reports whether discovery has the group version of another API server.
func (x *index) serves(gv schema.GroupVersion) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for gk, k := range x.discovered {
		is := func(m *meta.RESTMapping) bool { return m.Resource.Version == gv.Version }
		if gk.Group == gv.Group && !x.outdated(k) && slices.ContainsFunc(k.Versions, is) {
			return x.failed[gv] == nil
		}
	}

	return false
}

// kindsOf returns the kinds in the answers of discovery.
func kindsOf(groups []*metav1.APIGroup, lists []*metav1.APIResourceList) map[schema.GroupKind]*Kind {
	resources := map[string][]metav1.APIResource{}
	for _, list := range lists {
		resources[list.GroupVersion] = list.APIResources
	}
	found := map[schema.GroupKind]*Kind{}
	for _, group := range groups {
		for _, v := range append([]metav1.GroupVersionForDiscovery{group.PreferredVersion}, group.Versions...) {
			gv := schema.GroupVersion{Group: group.Name, Version: v.Version}
			add(found, gv, resources[gv.String()])
			delete(resources, gv.String()) // the preferred version comes twice
		}
	}

	return found
}

func add(found map[schema.GroupKind]*Kind, gv schema.GroupVersion, resources []metav1.APIResource) {
	for _, r := range resources {
		if strings.Contains(r.Name, "/") {
			continue // a subresource
		}
		gvk := gv.WithKind(r.Kind)
		k := found[gvk.GroupKind()]
		if k == nil {
			k = &Kind{Watchable: slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "watch")}
			found[gvk.GroupKind()] = k
		} else if k.Versions[len(k.Versions)-1].Resource.Version == gv.Version {
			continue // a second resource of the same kind
		}
		k.Versions = append(k.Versions, mapping(gvk, r.Name, r.Namespaced))
	}
}

func mapping(gvk schema.GroupVersionKind, resource string, namespaced bool) *meta.RESTMapping {
	m := &meta.RESTMapping{
		Resource: gvk.GroupVersion().WithResource(resource), GroupVersionKind: gvk, Scope: meta.RESTScopeRoot,
	}
	if namespaced {
		m.Scope = meta.RESTScopeNamespace
	}
	return m
}
