package discovery

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"lockstep.run/lockstep/test/require"
)

var all = metav1.Verbs{"create", "get", "list", "watch", "patch", "delete"}

// group is a group in discovery; the first version is the preferred one.
func group(name string, versions ...string) *metav1.APIGroup {
	g := &metav1.APIGroup{Name: name, PreferredVersion: metav1.GroupVersionForDiscovery{Version: versions[0]}}
	// The list has its own order.
	for i := len(versions) - 1; i >= 0; i-- {
		g.Versions = append(g.Versions, metav1.GroupVersionForDiscovery{Version: versions[i]})
	}
	return g
}

func resources(gv string, r ...metav1.APIResource) *metav1.APIResourceList {
	return &metav1.APIResourceList{GroupVersion: gv, APIResources: r}
}

func newCRD(uid, scope string, versions ...string) *definition {
	c := &definition{}
	c.Name, c.UID = "things.example.com", types.UID(uid)
	c.Spec.Group, c.Spec.Scope = "example.com", scope
	for _, v := range versions {
		c.Spec.Versions = append(c.Spec.Versions, definitionVersion{Name: strings.TrimPrefix(v, "-"), Served: !strings.HasPrefix(v, "-")})
	}
	c.Status.AcceptedNames.Kind, c.Status.AcceptedNames.Plural = "Thing", "things"
	c.Status.Conditions = []metav1.Condition{{Type: "Established", Status: "True"}}
	return c
}

var thingKind = schema.GroupKind{Group: "example.com", Kind: "Thing"}

// show returns scope and versions of a kind, the preferred one first.
func show(s *index, gk schema.GroupKind) string {
	e, err := s.find(gk)
	if e == nil && err == nil {
		return "not served"
	}
	if err != nil {
		return err.Error()
	}
	text := string(e.Preferred().Scope.Name())
	for _, m := range e.Versions {
		text += " " + m.Resource.Resource + "/" + m.Resource.Version
	}
	if !e.Watchable {
		text += " not watchable"
	}
	if e.Terminating {
		text += " terminating"
	}
	return text
}

func TestDiscovery(t *testing.T) {
	t.Parallel()
	s := newIndex()
	if _, err := s.mapping(thingKind, ""); !errors.Is(err, ErrNotReady) {
		t.Errorf("before discovery: %v", err)
	}
	s.fail(errors.New("connection refused"))
	if _, err := s.mapping(thingKind, ""); !errors.Is(err, ErrNotReady) || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("after discovery failed: %v", err)
	}
	found := kindsOf(
		[]*metav1.APIGroup{group("", "v1"), group("autoscaling", "v2", "v1"), group("authorization.k8s.io", "v1")},
		[]*metav1.APIResourceList{
			resources("v1",
				metav1.APIResource{Name: "pods", Kind: "Pod", Namespaced: true, Verbs: all},
				metav1.APIResource{Name: "pods/eviction", Kind: "Eviction", Namespaced: true, Verbs: metav1.Verbs{"create"}},
				metav1.APIResource{Name: "nodes", Kind: "Node", Verbs: all},
			),
			resources("autoscaling/v1",
				metav1.APIResource{Name: "horizontalpodautoscalers", Kind: "HorizontalPodAutoscaler", Namespaced: true, Verbs: all},
				metav1.APIResource{Name: "olds", Kind: "Old", Verbs: all},
			),
			resources("autoscaling/v2",
				metav1.APIResource{Name: "horizontalpodautoscalers", Kind: "HorizontalPodAutoscaler", Namespaced: true, Verbs: all},
			),
			resources("authorization.k8s.io/v1",
				metav1.APIResource{Name: "subjectaccessreviews", Kind: "SubjectAccessReview", Verbs: metav1.Verbs{"create"}},
			),
		})
	s.discover(found, nil, nil)
	for gk, want := range map[schema.GroupKind]string{
		{Kind: "Pod"}:      "namespace pods/v1",
		{Kind: "Node"}:     "root nodes/v1",
		{Kind: "Eviction"}: "not served",
		{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}:      "namespace horizontalpodautoscalers/v2 horizontalpodautoscalers/v1",
		{Group: "autoscaling", Kind: "Old"}:                          "root olds/v1",
		{Group: "authorization.k8s.io", Kind: "SubjectAccessReview"}: "root subjectaccessreviews/v1 not watchable",
		thingKind: "not served",
	} {
		require.Equal(t, want, show(s, gk), gk)
	}
	if _, err := s.mapping(schema.GroupKind{Kind: "Pod"}, "v2"); !meta.IsNoMatchError(err) {
		t.Errorf("a version that is not served: %v", err)
	}
	if _, err := s.mapping(thingKind, ""); !meta.IsNoMatchError(err) {
		t.Errorf("a kind that is not served: %v", err)
	}
}

func TestServedByCRD(t *testing.T) {
	t.Parallel()
	discovered := func(versions ...string) map[schema.GroupKind]*Kind {
		var lists []*metav1.APIResourceList
		for _, v := range versions {
			lists = append(lists, resources("example.com/"+v, metav1.APIResource{Name: "things", Kind: "Thing", Verbs: all}))
		}
		if len(versions) == 0 {
			return map[schema.GroupKind]*Kind{}
		}
		return kindsOf([]*metav1.APIGroup{group("example.com", versions...)}, lists)
	}
	terminating := newCRD("u", "Cluster", "v1")
	terminating.Status.Conditions = append(terminating.Status.Conditions, metav1.Condition{Type: "Terminating", Status: "True"})
	changed := newCRD("u", "Cluster", "v1")
	changed.Generation = 2 // its schemas can have changed
	pending := newCRD("u", "Cluster", "v1")
	pending.Status.Conditions = nil
	pendingNone := newCRD("u", "Namespaced", "-v1")
	pendingNone.Status.Conditions = nil
	unaccepted := newCRD("u", "Namespaced", "-v1")
	unaccepted.Status.Conditions, unaccepted.Status.AcceptedNames.Kind = nil, ""
	const none = "the API server does not serve Thing.example.com: no version in its CustomResourceDefinition is served: serve one again, or delete the CustomResourceDefinition with all that is stored of it"

	type step struct {
		do      func(s *index) []schema.GroupKind
		want    string
		changed bool
	}
	put := func(c *definition) func(*index) []schema.GroupKind {
		return func(s *index) []schema.GroupKind { return s.putCRDs([]*definition{c}, false) }
	}
	list := func(c ...*definition) func(*index) []schema.GroupKind {
		return func(s *index) []schema.GroupKind { return s.putCRDs(c, true) }
	}
	drop := func(s *index) []schema.GroupKind { return s.dropCRD("things.example.com") }
	read := func(versions ...string) func(*index) []schema.GroupKind {
		return func(s *index) []schema.GroupKind {
			kinds, _ := s.discover(discovered(versions...), nil, nil)
			return kinds
		}
	}
	stale := map[schema.GroupVersion]error{{Group: "example.com", Version: "v1"}: errors.New("stale")}
	offer := func(failed map[schema.GroupVersion]error, versions ...string) func(*index) []schema.GroupKind {
		return func(s *index) []schema.GroupKind {
			kinds, _ := s.discover(discovered(versions...), failed, map[schema.GroupVersion]bool{{Group: "example.com", Version: "v1"}: true})
			return kinds
		}
	}
	outage := func(s *index) []schema.GroupKind {
		kinds, _ := s.discover(discovered(), stale, map[schema.GroupVersion]bool{})
		return kinds
	}
	for name, tc := range map[string][]step{
		"established": {
			{put(pending), "not served", false},
			{put(newCRD("u", "Cluster", "v1")), "root things/v1", true},
			{put(newCRD("u", "Cluster", "v1")), "root things/v1", false},
			{put(changed), "root things/v1", true},
			{put(changed), "root things/v1", false},
			{drop, "not served", true},
			{drop, "not served", false},
		},
		"versions in the order of Kubernetes": {
			{put(newCRD("u", "Namespaced", "v1alpha1", "v2beta1", "-v3", "v1", "v10")), "namespace things/v10 things/v1 things/v2beta1 things/v1alpha1", true},
		},
		"no version": {
			{put(unaccepted), "not served", false},
			{put(pendingNone), none, true},
			{put(newCRD("u", "Namespaced", "-v1")), none, false},
			{put(newCRD("u", "Namespaced", "v1")), "namespace things/v1", true},
			{put(newCRD("u", "Namespaced", "-v1")), none, true},
			{drop, "not served", true},
		},
		"terminating": {
			{put(newCRD("u", "Cluster", "v1")), "root things/v1", true},
			{put(terminating), "root things/v1 terminating", true},
		},
		"replaced while the watch was away": {
			{list(newCRD("u", "Cluster", "v1")), "root things/v1", true},
			{list(newCRD("v", "Cluster", "v1")), "root things/v1", true},
			{list(newCRD("v", "Cluster", "v1")), "root things/v1", false},
			{list(), "not served", true},
		},
		"in discovery first, then in the watch": {
			{read("v1"), "root things/v1", true},
			{put(newCRD("u", "Cluster", "v2", "v1")), "root things/v2 things/v1", true},
		},
		"discovery lags behind the deletion": {
			{put(newCRD("u", "Cluster", "v1")), "root things/v1", true},
			{drop, "not served", true},
			{read("v1"), "not served", false},
		},
		"another API server takes the kind over": {
			{read("v1"), "root things/v1", true},
			{put(newCRD("u", "Namespaced", "v1")), "namespace things/v1", true},
			{offer(nil, "v1"), "namespace things/v1", false},
			{drop, "root things/v1", true},
			{read(), "not served", true},
			{put(newCRD("v", "Namespaced", "v1")), "namespace things/v1", true},
			{drop, "not served", true},
			{read("v1"), "not served", false},
			{offer(stale), "the API example.com/v1 is registered and not available: stale", false},
			{offer(nil, "v1"), "root things/v1", true},
			{outage, "root things/v1", false},
		},
		"discovery lags behind a new version": {
			{put(newCRD("u", "Cluster", "v2")), "root things/v2", true},
			{read("v1"), "root things/v2", false},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newIndex()
			s.discover(discovered(), nil, nil)
			for i, step := range tc {
				changed := step.do(s)
				require.Equal(t, step.want, show(s, thingKind), fmt.Sprintf("step %d", i))
				want := "[]"
				if step.changed {
					want = "[Thing.example.com]"
				}
				require.Equal(t, want, fmt.Sprint(changed), fmt.Sprintf("step %d: changed", i))
			}
		})
	}
}

// TestCRDWithoutServedVersion: the objects are stored and cannot be read, so they must not be
// treated as deleted. No request about them is possible.
func TestCRDWithoutServedVersion(t *testing.T) {
	t.Parallel()
	x := newIndex()
	x.discover(map[schema.GroupKind]*Kind{}, nil, nil)
	x.putCRDs([]*definition{newCRD("u", "Namespaced", "-v1")}, true)
	if kind, err := x.find(thingKind); kind != nil || err == nil {
		t.Errorf("it is not known which objects are stored: %+v", kind)
	}
	if m, err := x.mapping(thingKind, "v1"); !meta.IsNoMatchError(err) {
		t.Errorf("the version is not served: %v, %v", m, err)
	}
	x.dropCRD("things.example.com")
	if kind, err := x.find(thingKind); kind != nil || err != nil {
		t.Errorf("the objects went with the CRD: %+v, %v", kind, err)
	}
}

// TestDiscoveryFailsInPart: another API server's outage must not look as if its
// kinds no longer existed.
func TestDiscoveryFailsInPart(t *testing.T) {
	t.Parallel()
	s := newIndex()
	gv := schema.GroupVersion{Group: "example.com", Version: "v1"}
	down := map[schema.GroupVersion]error{gv: errors.New("stale")}
	s.discover(map[schema.GroupKind]*Kind{}, down, nil)
	if _, err := s.mapping(thingKind, ""); err == nil || meta.IsNoMatchError(err) {
		t.Errorf("a kind of an unreadable API might be served: %v", err)
	}
	if s.serves(gv) {
		t.Error("discovery did not report the group version")
	}
	up := func() map[schema.GroupKind]*Kind {
		return kindsOf([]*metav1.APIGroup{group(gv.Group, gv.Version)}, []*metav1.APIResourceList{
			resources(gv.String(), metav1.APIResource{Name: "things", Kind: "Thing", Verbs: all}),
		})
	}
	if changed, _ := s.discover(up(), nil, nil); len(changed) != 1 || !s.serves(gv) {
		t.Errorf("the API came up: %v", changed)
	}
	if changed, _ := s.discover(map[schema.GroupKind]*Kind{}, down, nil); len(changed) != 0 || show(s, thingKind) != "root things/v1" {
		t.Errorf("an outage does not change which kinds are served: %v %s", changed, show(s, thingKind))
	}
	if changed, _ := s.discover(map[schema.GroupKind]*Kind{}, nil, nil); len(changed) != 1 || show(s, thingKind) != "not served" {
		t.Errorf("the API was removed: %v %s", changed, show(s, thingKind))
	}
}

// An API that has not been available since discovery was read is known from its APIService.
func TestAPIServiceAway(t *testing.T) {
	t.Parallel()
	d := &Discovery{index: newIndex(), available: map[string]schema.GroupVersion{}}
	d.index.discover(map[schema.GroupKind]*Kind{}, nil, nil)
	service := &definition{ObjectMeta: metav1.ObjectMeta{Name: "v1." + thingKind.Group}}
	service.Spec.Group, service.Spec.Version, service.Spec.Service = thingKind.Group, "v1", &struct{}{}
	noMatch := func() bool {
		_, err := d.index.mapping(thingKind, "v1")
		return meta.IsNoMatchError(err)
	}
	s := apiServices{d}
	s.Changed(service)
	if noMatch() {
		t.Error("its kinds are taken for ones that are not served")
	}
	if _, err := d.index.mapping(schema.GroupKind{Group: "other.example.com", Kind: "Thing"}, "v1"); !meta.IsNoMatchError(err) {
		t.Errorf("another group: %v", err)
	}
	s.Deleted(service)
	if !noMatch() {
		t.Error("it is deleted, and its kinds might be served")
	}
	s.Changed(service)
	if s.Listed(nil); !noMatch() {
		t.Error("it was deleted between watches, and its kinds might be served")
	}
}

// TestDiscoveryEndsMeanwhile: a lookup at the end of the first discovery gets the answer from
// before or from after it, and never a mixture of both that reports a served kind as not served.
func TestDiscoveryEndsMeanwhile(t *testing.T) {
	t.Parallel()
	gv := schema.GroupVersion{Group: "example.com", Version: "v1"}
	for range 2000 {
		x := newIndex()
		started, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			close(started)
			for known := false; !known; {
				mapping, err := x.mapping(thingKind, "")
				if known = err == nil; known && mapping == nil {
					t.Error("neither a mapping nor an error")
				}
				if err != nil && !errors.Is(err, ErrNotReady) {
					t.Errorf("the kind is not known yet, or it is served: %v", err)
				}
				if kind, err := x.find(thingKind); kind == nil && !errors.Is(err, ErrNotReady) {
					t.Errorf("the kind is not known yet, or it is served: %v", err)
				}
			}
		}()
		<-started
		x.discover(kindsOf([]*metav1.APIGroup{group(gv.Group, gv.Version)}, []*metav1.APIResourceList{
			resources(gv.String(), metav1.APIResource{Name: "things", Kind: "Thing", Verbs: all}),
		}), nil, nil)
		<-done
		if t.Failed() {
			return
		}
	}
}
