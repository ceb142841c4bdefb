package livestate

import (
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
	apiversion "k8s.io/apimachinery/pkg/version"
)

// ErrNotReady means that what the API server serves is not known yet.
var ErrNotReady = errors.New("what the API server serves is not known yet")

// ErrNotWatchable means that an API cannot be listed and watched, such as that
// of SubjectAccessReviews: its objects are requests, and nothing of them is
// stored.
var ErrNotWatchable = errors.New("the API server cannot list and watch this kind, so it cannot be managed")

// entry is one served kind.
type entry struct {
	// versions are the mappings of all served versions, the preferred one first; none
	// where a CRD serves none of its versions.
	versions []*meta.RESTMapping
	// watchable reports whether the preferred version can be listed and watched.
	watchable bool
	// terminating means that the kind's CRD is being deleted.
	terminating bool
	// identity is the UID of the kind's CRD: objects of one CRD have nothing to do
	// with those of its successor.
	identity types.UID
}

func (e *entry) preferred() *meta.RESTMapping { return e.versions[0] }

func (e *entry) namespaced() bool {
	return e.preferred().Scope.Name() == meta.RESTScopeNameNamespace
}

func (e *entry) equal(o *entry) bool {
	if e == nil || o == nil {
		return e == o
	}
	return e.watchable == o.watchable && e.terminating == o.terminating && e.identity == o.identity &&
		slices.EqualFunc(e.versions, o.versions, func(a, b *meta.RESTMapping) bool {
			return a.Resource == b.Resource && a.Scope.Name() == b.Scope.Name()
		})
}

// served is what the API server serves: kinds of CRDs by the watch of CRDs, all
// others by discovery.
type served struct {
	mu sync.RWMutex
	// err is why nothing is known; nil from the first discovery on.
	err error
	// discovered are the kinds in discovery, those of CRDs included.
	discovered map[schema.GroupKind]*entry
	// failed are the group versions that discovery could not tell about.
	failed map[schema.GroupVersion]error
	// crds are the served kinds of CRDs, by the CRD's name.
	crds map[string]*crdKind
	// byKind are the entries of the kinds in crds.
	byKind map[schema.GroupKind]*entry
	// past are the names of CRDs that were there once: what discovery says about
	// their resources is older than what the watch said, except of a group version
	// that another API server offers.
	past map[string]struct{}
	// offered are the group versions that other API servers offered when discovery
	// read them last.
	offered map[schema.GroupVersion]bool
}

// crdKind is a kind that a CRD serves.
type crdKind struct {
	kind  schema.GroupKind
	entry *entry
}

func newServed() *served {
	return &served{
		err: ErrNotReady, discovered: map[schema.GroupKind]*entry{},
		crds: map[string]*crdKind{}, byKind: map[schema.GroupKind]*entry{}, past: map[string]struct{}{},
	}
}

// errNoVersion means that a CRD is there and serves none of its versions: objects of
// it may be stored all the same.
var errNoVersion = errors.New("no version in its CustomResourceDefinition is served: serve one again, or delete the CustomResourceDefinition with all that is stored of it")

// find returns the entry of the kind, nil without an error where it is not served.
// The error is why that is not known: one answer of one moment, since discovery may
// come between two questions.
func (s *served) find(gk schema.GroupKind) (*entry, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.err != nil {
		return nil, s.err
	}
	switch e := s.lookup(gk); {
	case e == nil:
		return nil, failure(s.failed, gk.Group)
	case len(e.versions) == 0:
		return nil, fmt.Errorf("the API server does not serve %s: %w", gk, errNoVersion)
	default:
		return e, nil
	}
}

// failure returns why a group could not be read, nil where it could.
func failure(failed map[schema.GroupVersion]error, group string) error {
	for gv, err := range failed {
		if gv.Group == group {
			return fmt.Errorf("the API %s is registered and not available: %w", gv, err)
		}
	}
	return nil
}

func (s *served) lookup(gk schema.GroupKind) *entry {
	if e := s.byKind[gk]; e != nil {
		return e
	}
	if e := s.discovered[gk]; e != nil && !s.outdated(e) {
		return e
	}
	return nil
}

// outdated reports whether the watch of CRDs knows better than discovery.
func (s *served) outdated(e *entry) bool {
	resource := e.preferred().Resource
	_, past := s.past[resource.Resource+"."+resource.Group]
	return past && !s.offered[resource.GroupVersion()]
}

// mapping returns the mapping of the kind in the version, or in the preferred
// one where the version is empty.
func (s *served) mapping(gk schema.GroupKind, version string) (*meta.RESTMapping, error) {
	e, err := s.find(gk)
	switch {
	case errors.Is(err, errNoVersion):
		return nil, noMatch(gk, version)
	case err != nil:
		return nil, err
	case e == nil:
		return nil, noMatch(gk, version)
	case version == "":
		return e.preferred(), nil
	}
	for _, m := range e.versions {
		if m.Resource.Version == version {
			return m, nil
		}
	}
	return nil, noMatch(gk, version)
}

func noMatch(gk schema.GroupKind, version string) error {
	err := &meta.NoKindMatchError{GroupKind: gk}
	if version != "" {
		err.SearchedVersions = []string{version}
	}
	return err
}

// fail notes why nothing is known yet.
func (s *served) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		s.err = fmt.Errorf("%w: %w", ErrNotReady, err)
	}
}

// discover takes over what discovery says, and what other API servers offered before
// it was read. It returns the kinds that changed, and the groups that failed before or
// fail now, not both: whether a kind of theirs that was never read is served is known
// now, or is not known any more.
func (s *served) discover(
	found map[schema.GroupKind]*entry, failed map[schema.GroupVersion]error, offered map[schema.GroupVersion]bool,
) (kinds []schema.GroupKind, groups map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for gk, old := range s.discovered {
		// What could not be read is taken to be as it was.
		if _, ok := found[gk]; !ok && failed[old.preferred().Resource.GroupVersion()] != nil && !s.outdated(old) {
			found[gk] = old
		}
	}
	for gv := range failed {
		if s.offered[gv] {
			offered[gv] = true
		}
	}
	both := maps.Clone(s.discovered)
	maps.Copy(both, found)
	before := map[schema.GroupKind]*entry{}
	for gk := range both {
		before[gk] = s.lookup(gk)
	}
	groups = map[string]bool{}
	for _, all := range []map[schema.GroupVersion]error{s.failed, failed} {
		for gv := range all {
			groups[gv.Group] = (failure(s.failed, gv.Group) == nil) != (failure(failed, gv.Group) == nil)
		}
	}
	s.discovered, s.failed, s.offered, s.err = found, failed, offered, nil
	return s.changed(before), groups
}

// putCRDs takes over CRDs, all of them where it is said so, and returns the
// kinds that changed.
func (s *served) putCRDs(crds []*crd, all bool) []schema.GroupKind {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := map[schema.GroupKind]*entry{}
	listed := map[string]struct{}{}
	for _, c := range crds {
		listed[c.Name] = struct{}{}
		s.past[c.Name] = struct{}{}
		s.setCRD(c.Name, c.kind(), before)
	}
	if all {
		for name := range s.crds {
			if _, ok := listed[name]; !ok {
				s.setCRD(name, nil, before)
			}
		}
	}
	return s.changed(before)
}

// dropCRD forgets a deleted CRD, and returns the kinds that changed.
func (s *served) dropCRD(name string) []schema.GroupKind {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := map[schema.GroupKind]*entry{}
	s.setCRD(name, nil, before)
	return s.changed(before)
}

// setCRD makes the kind of a CRD what it serves from now on, nil for nothing,
// and notes in before what was served of the kinds that this concerns.
func (s *served) setCRD(name string, next *crdKind, before map[schema.GroupKind]*entry) {
	note := func(gk schema.GroupKind) {
		if _, noted := before[gk]; !noted {
			before[gk] = s.lookup(gk)
		}
	}
	if old := s.crds[name]; old != nil {
		note(old.kind)
		delete(s.byKind, old.kind)
		delete(s.crds, name)
	}
	if next != nil {
		note(next.kind)
		s.crds[name], s.byKind[next.kind] = next, next.entry
	}
}

// changed returns the kinds, sorted, that are not served as they were before;
// none before the first discovery.
func (s *served) changed(before map[schema.GroupKind]*entry) []schema.GroupKind {
	var kinds []schema.GroupKind
	for gk, old := range before {
		if s.err == nil && !old.equal(s.lookup(gk)) {
			kinds = append(kinds, gk)
		}
	}
	slices.SortFunc(kinds, func(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) })
	return kinds
}

// serves reports whether discovery told about the group version of another API server.
func (s *served) serves(gv schema.GroupVersion) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for gk, e := range s.discovered {
		if gk.Group != gv.Group || s.outdated(e) {
			continue
		}
		for _, m := range e.versions {
			if m.Resource.Version == gv.Version {
				return s.failed[gv] == nil
			}
		}
	}
	return false
}

// index makes entries of what discovery returned.
func index(groups []metav1.APIGroup, resources map[schema.GroupVersion]*metav1.APIResourceList) map[schema.GroupKind]*entry {
	found := map[schema.GroupKind]*entry{}
	for _, group := range groups {
		for _, gv := range preferredFirst(group) {
			if list := resources[gv]; list != nil {
				add(found, gv, list.APIResources)
			}
		}
	}
	return found
}

// preferredFirst returns the versions of a group in the API server's order of
// preference.
func preferredFirst(group metav1.APIGroup) []schema.GroupVersion {
	var versions []schema.GroupVersion
	preferred := schema.GroupVersion{Group: group.Name, Version: group.PreferredVersion.Version}
	if preferred.Version != "" {
		versions = append(versions, preferred)
	}
	for _, v := range group.Versions {
		if gv := (schema.GroupVersion{Group: group.Name, Version: v.Version}); gv != preferred {
			versions = append(versions, gv)
		}
	}
	return versions
}

func add(found map[schema.GroupKind]*entry, gv schema.GroupVersion, resources []metav1.APIResource) {
	for _, r := range resources {
		if strings.Contains(r.Name, "/") {
			continue // a subresource
		}
		gk := schema.GroupKind{Group: gv.Group, Kind: r.Kind}
		e := found[gk]
		if e == nil {
			e = &entry{watchable: slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "watch")}
			found[gk] = e
		} else if e.versions[len(e.versions)-1].Resource.Version == gv.Version {
			continue // a second resource of the same kind
		}
		e.versions = append(e.versions, mapping(gv, r.Kind, r.Name, r.Namespaced))
	}
}

func mapping(gv schema.GroupVersion, kind, resource string, namespaced bool) *meta.RESTMapping {
	m := &meta.RESTMapping{
		Resource: gv.WithResource(resource), GroupVersionKind: gv.WithKind(kind), Scope: meta.RESTScopeRoot,
	}
	if namespaced {
		m.Scope = meta.RESTScopeNamespace
	}
	return m
}

// kind returns what a CRD serves; nil before it serves anything.
func (c *crd) kind() *crdKind {
	var versions []string
	for _, v := range c.Spec.Versions {
		if v.Served {
			versions = append(versions, v.Name)
		}
	}
	names := c.Status.AcceptedNames
	if names.Kind == "" || len(versions) > 0 && !c.has("Established") {
		return nil
	}
	slices.SortFunc(versions, func(a, b string) int { return apiversion.CompareKubeAwareVersionStrings(b, a) })
	e := &entry{watchable: true, terminating: c.has("Terminating"), identity: c.UID}
	for _, v := range versions {
		gv := schema.GroupVersion{Group: c.Spec.Group, Version: v}
		e.versions = append(e.versions, mapping(gv, names.Kind, names.Plural, c.Spec.Scope == "Namespaced"))
	}
	return &crdKind{kind: schema.GroupKind{Group: c.Spec.Group, Kind: names.Kind}, entry: e}
}
