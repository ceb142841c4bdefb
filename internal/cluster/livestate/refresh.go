package livestate

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"

	"lockstep.run/lockstep/internal/limits"
)

// refresher reads what the API server serves: once at the start, and again when
// a watch means that it may have changed.
type refresher struct {
	cache *Cache
	// wake is filled when one of the wants is set.
	wake                       chan struct{}
	wantDiscovery, wantVersion atomic.Bool
	version                    atomic.Pointer[version.Info]
	// crdsKnown is closed when the watch of CRDs has a list, or failed.
	crdsKnown chan struct{}
	crdsOnce  sync.Once

	mu sync.Mutex
	// available are the group versions that other API servers serve at present, by
	// the APIService's name.
	available map[string]schema.GroupVersion
}

func newRefresher(c *Cache) *refresher {
	return &refresher{
		cache: c, wake: make(chan struct{}, 1), crdsKnown: make(chan struct{}),
		available: map[string]schema.GroupVersion{},
	}
}

// discovery asks for discovery to be read.
func (f *refresher) discovery() { f.ask(&f.wantDiscovery) }

// reconnected asks for a look whether the API server was replaced by another
// version.
func (f *refresher) reconnected() { f.ask(&f.wantVersion) }

func (f *refresher) ask(want *atomic.Bool) {
	want.Store(true)
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// run works until the context ends.
func (f *refresher) run(ctx context.Context) {
	f.stream(ctx, f.crds())
	if !f.start(ctx) {
		return
	}
	if e, _ := f.cache.served.find(schema.GroupKind{Group: apiServiceResource.Group, Kind: "APIService"}); e != nil {
		f.stream(ctx, f.apiServices())
	}
	again := newBackoff(limits.WatchBackoffMax)
	again.Duration = limits.DiscoveryDebounce
	attempts := 0
	var retry <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.wake:
			attempts = 0
		case <-retry:
		}
		if !sleep(ctx, limits.DiscoveryDebounce) {
			return
		}
		retry = nil
		complete, err := f.update(ctx)
		switch {
		case err != nil: // what is wanted still is
			retry = time.After(again.Step())
			continue
		case !complete:
			if attempts++; attempts < limits.DiscoveryAttempts {
				f.wantDiscovery.Store(true)
				retry = time.After(again.Step())
			}
			continue
		}
		again = newBackoff(limits.WatchBackoffMax)
		again.Duration = limits.DiscoveryDebounce
	}
}

// start reads everything once, and repeats that until it succeeds.
func (f *refresher) start(ctx context.Context) bool {
	pauses := newBackoff(limits.WatchBackoffMax)
	for {
		err := f.first(ctx)
		if err == nil {
			f.cache.servedChanged(f.cache.used())
			return true
		}
		f.cache.served.fail(err)
		for _, gk := range f.cache.used() {
			f.cache.kindChanged(gk)
		}
		if !sleep(ctx, pauses.Step()) {
			return false
		}
	}
}

func (f *refresher) first(ctx context.Context) error {
	if err := f.readVersion(ctx); err != nil {
		return err
	}
	found, failed, err := f.read(ctx)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-f.crdsKnown:
	}
	f.cache.served.discover(found, failed, nil)
	return nil
}

// update does what was asked for. It reports false where discovery has to be
// read once more. After an error it is still asked for.
func (f *refresher) update(ctx context.Context) (complete bool, err error) {
	if f.wantVersion.Swap(false) {
		before := f.version.Load()
		if err := f.readVersion(ctx); err != nil {
			f.wantVersion.Store(true)
			return false, err
		}
		if now := f.version.Load(); *now != *before {
			f.wantDiscovery.Store(true)
			if f.cache.options.VersionChanged != nil {
				f.cache.options.VersionChanged(*now)
			}
		}
	}
	if !f.wantDiscovery.Swap(false) {
		return true, nil
	}
	offered := f.offered()
	found, failed, err := f.read(ctx)
	if err != nil {
		f.wantDiscovery.Store(true)
		return false, err
	}
	kinds, groups := f.cache.served.discover(found, failed, offered)
	for _, gk := range f.cache.used() {
		if e, _ := f.cache.served.find(gk); e == nil && groups[gk.Group] && !slices.Contains(kinds, gk) {
			kinds = append(kinds, gk)
		}
	}
	f.cache.servedChanged(kinds)
	return f.complete(), nil
}

// offered returns what other API servers offer at present.
func (f *refresher) offered() map[schema.GroupVersion]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := map[schema.GroupVersion]bool{}
	for _, gv := range f.available {
		all[gv] = true
	}
	return all
}

// complete reports whether discovery has all that is available: it follows an
// APIService with some delay.
func (f *refresher) complete() bool {
	for gv := range f.offered() {
		if !f.cache.served.serves(gv) {
			return false
		}
	}
	return true
}

func (f *refresher) readVersion(ctx context.Context) error {
	v, err := f.cache.clients.discovery.ServerVersionWithContext(ctx)
	if err != nil {
		return fmt.Errorf("read the version of the API server: %w", err)
	}
	f.version.Store(v)
	return nil
}

// read reads discovery: two requests, or some dozens from API servers before
// Kubernetes 1.26.
func (f *refresher) read(ctx context.Context) (map[schema.GroupKind]*entry, map[schema.GroupVersion]error, error) {
	client := f.cache.clients.discovery
	groups, resources, failed, err := client.GroupsAndMaybeResourcesWithContext(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("read what the API server serves: %w", err)
	}
	if resources == nil {
		_, lists, err := client.ServerGroupsAndResourcesWithContext(ctx)
		if len(lists) == 0 && err != nil {
			return nil, nil, fmt.Errorf("read what the API server serves: %w", err)
		}
		failed, _ = discovery.GroupDiscoveryFailedErrorGroups(err)
		resources = map[schema.GroupVersion]*metav1.APIResourceList{}
		for _, list := range lists {
			if gv, err := schema.ParseGroupVersion(list.GroupVersion); err == nil {
				resources[gv] = list
			}
		}
	}
	return index(groups.Groups, resources), failed, nil
}

func (f *refresher) stream(ctx context.Context, s *stream) {
	f.cache.streams.Go(func() { s.run(ctx) })
}

// crds is the watch of CRDs. When it broke, the API server may be another one.
func (f *refresher) crds() *stream {
	return &stream{
		client: f.cache.clients.definitions, path: collection(crdResource, ""), store: crdStore{f},
		newList: func() runtime.Object { return &crdList{} },
		trim:    func(page runtime.Object) runtime.Object { return page },
		failed:  func(error) { f.crdsAreKnown() }, connected: func() {}, restored: f.reconnected,
	}
}

func (f *refresher) crdsAreKnown() { f.crdsOnce.Do(func() { close(f.crdsKnown) }) }

// crdStore has the index of what is served follow the watch of CRDs.
type crdStore struct{ *refresher }

// Add takes over a new CRD.
func (s crdStore) Add(obj any) error { return s.Update(obj) }

// Update takes over a changed CRD.
func (s crdStore) Update(obj any) error {
	c, ok := obj.(*crd)
	if !ok {
		return fmt.Errorf("the watch of CRDs delivered an unexpected %T", obj)
	}
	s.cache.servedChanged(s.cache.served.putCRDs([]*crd{c}, false))
	return nil
}

// Delete drops a CRD.
func (s crdStore) Delete(obj any) error {
	if c, ok := obj.(*crd); ok {
		s.cache.servedChanged(s.cache.served.dropCRD(c.Name))
	}
	return nil
}

// Replace takes over a list of all CRDs.
func (s crdStore) Replace(items []any, _ string) error {
	var all []*crd
	for _, item := range items {
		if c, ok := item.(*crd); ok {
			all = append(all, c)
		}
	}
	s.cache.servedChanged(s.cache.served.putCRDs(all, true))
	s.crdsAreKnown()
	return nil
}

// Resync does nothing.
func (s crdStore) Resync() error { return nil }

// apiServices is the watch of APIServices.
func (f *refresher) apiServices() *stream {
	return &stream{
		client: f.cache.clients.definitions, path: collection(apiServiceResource, ""), store: apiServiceStore{f},
		newList: func() runtime.Object { return &apiServiceList{} },
		trim:    func(page runtime.Object) runtime.Object { return page },
		failed:  func(error) {}, connected: func() {},
	}
}

// apiServiceStore asks for discovery when an API of another API server comes or
// goes.
type apiServiceStore struct{ *refresher }

// Add takes over a new APIService.
func (s apiServiceStore) Add(obj any) error { return s.Update(obj) }

// Update takes over a changed APIService.
func (s apiServiceStore) Update(obj any) error {
	if a, ok := obj.(*apiService); ok {
		s.set(a.Name, a.served())
	}
	return nil
}

// Delete drops an APIService.
func (s apiServiceStore) Delete(obj any) error {
	if a, ok := obj.(*apiService); ok {
		s.set(a.Name, nil)
	}
	return nil
}

// Replace takes over a list of all APIServices.
func (s apiServiceStore) Replace(items []any, _ string) error {
	listed := map[string]*schema.GroupVersion{}
	for _, item := range items {
		if a, ok := item.(*apiService); ok {
			listed[a.Name] = a.served()
		}
	}
	s.mu.Lock()
	for name := range s.available {
		if _, ok := listed[name]; !ok {
			listed[name] = nil
		}
	}
	s.mu.Unlock()
	for name, gv := range listed {
		s.set(name, gv)
	}
	return nil
}

// Resync does nothing.
func (s apiServiceStore) Resync() error { return nil }

// set notes what an APIService offers, nil for nothing.
func (s apiServiceStore) set(name string, gv *schema.GroupVersion) {
	s.mu.Lock()
	old, had := s.available[name]
	if gv == nil {
		delete(s.available, name)
	} else {
		s.available[name] = *gv
	}
	s.mu.Unlock()
	// At the start discovery was read before, and most often has it.
	if (gv == nil && had) || (gv != nil && (!had || old != *gv) && !s.cache.served.serves(*gv)) {
		s.discovery()
	}
}

// served returns what another API server offers through the APIService; nil
// where that is not available or the API server's own.
func (a *apiService) served() *schema.GroupVersion {
	if a.Spec.Service == nil || !is(a.Status.Conditions, "Available") {
		return nil
	}
	return &schema.GroupVersion{Group: a.Spec.Group, Version: a.Spec.Version}
}

// sleep reports false where the context ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
