package livestate

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"

	"lockstep.run/lockstep/internal/cluster/discovery"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/objects"
)

const (
	watchGrace = 30 * time.Second // until a watch without users stops, so that a reinstalled package does not list again
	stopWait   = 2 * time.Second  // for watches to end
	pendingMax = 15 * time.Second // until the first list of a kind counts as slow
)

// ErrNotReady means that discovery has not succeeded yet.
var ErrNotReady = discovery.ErrNotReady

// ErrNotWatchable means that an API cannot be listed and watched, such as
// SubjectAccessReviews: its objects are requests, and are not stored.
var ErrNotWatchable = errors.New("the API server cannot list and watch this kind, so it cannot be managed")

// Options configure a Cache. The functions are called for different kinds at the same time, and
// must not block.
type Options struct {
	// Config has the cluster and the identity of the watches.
	Config *rest.Config
	// Names has the labels of the watched objects.
	Names *objects.Names
	// Selector limits watches by label; empty means Names' selector.
	Selector string
	// Observe returns the record of a live object; nil means that its metadata is enough.
	// UID, ResourceVersion and Watched are filled in.
	Observe func(key objects.Key, live *unstructured.Unstructured) *objects.Observed
	// Changed is called after the watch changed the record of an object, and once after all changes
	// of a list. A record is nil if the object left the watch: it was deleted, lost its label, or is
	// not served any more.
	Changed func(changes ...objects.Change)
	// KindChanged is called after the KindState of a kind in use changed, and after the versions,
	// the scope or the CustomResourceDefinition of any kind changed.
	KindChanged func(gk schema.GroupKind)
	// VersionChanged is called when the version of the API server was read or changed; it may be nil.
	VersionChanged func(v version.Info)
	// Log receives panics of Observe.
	Log logr.Logger
	// Held receives the change in the number of bytes kept of the API server's answers; a
	// negative number releases them. It can be nil.
	Held func(bytes int64)
	// Grace is the time until an unused watch stops; 0 means watchGrace. Pending is how long the first
	// list of a kind is pending at most; 0 means pendingMax.
	Grace, Pending time.Duration
}

// Cache keeps records of live objects up to date. It is safe for concurrent use.
type Cache struct {
	options   Options
	clients   *clients
	discovery *discovery.Discovery
	// watches are the goroutines.
	watches sync.WaitGroup

	mu sync.RWMutex
	// ctx is Start's context; nil before and after.
	ctx   context.Context
	kinds map[schema.GroupKind]*kind
	users map[string]sets.Set[schema.GroupKind]
	// runs counts all runs of all kinds.
	runs int64
}

// New returns a Cache that works from Start on.
func New(options Options) (*Cache, error) {
	if options.Names == nil || options.Observe == nil || options.Changed == nil || options.KindChanged == nil {
		return nil, errors.New("livestate: Names, Observe, Changed and KindChanged are required")
	}
	if options.Selector == "" {
		options.Selector = options.Names.Selector()
	}
	options.Grace, options.Pending = cmp.Or(options.Grace, watchGrace), cmp.Or(options.Pending, pendingMax)
	clients, err := newClients(options.Config)
	if err != nil {
		return nil, err
	}

	c := &Cache{
		options: options, clients: clients,
		kinds: map[schema.GroupKind]*kind{}, users: map[string]sets.Set[schema.GroupKind]{},
	}

	c.discovery, err = discovery.New(clients.config, clients.pool, discovery.Options{
		Used: c.used, Changed: c.servedChanged, VersionChanged: options.VersionChanged, Held: options.Held,
	})
	if err != nil {
		return nil, err
	}

	return c, nil
}

// NeedLeaderElection reports whether only the leader watches.
func (c *Cache) NeedLeaderElection() bool { return true }

// Start watches until the context ends. It is called once.
func (c *Cache) Start(ctx context.Context) error {
	ctx = logr.NewContext(ctx, logr.Discard()) // errors are in KindState
	c.mu.Lock()
	c.ctx = ctx
	c.mu.Unlock()
	c.watches.Go(func() {
		_ = panics.Guard(context.Background(), "discovery", func() error { c.discovery.Run(ctx); return nil })
	})
	<-ctx.Done()

	c.mu.Lock()
	c.ctx = nil
	for _, k := range c.kinds {
		if k.idle != nil {
			k.idle.Stop()
		}
	}
	c.mu.Unlock()
	ended := make(chan struct{})
	panics.Go(ctx, "waiting for watches", func() { c.watches.Wait(); close(ended) })
	select {
	case <-ended:
	case <-time.After(stopWait):
	}

	return nil
}

// Use replaces the kinds that a user needs to watch; none removes the user.
func (c *Cache) Use(user string, kinds []schema.GroupKind) {
	next := sets.New(kinds...)
	var dropped []objects.Key
	c.mu.Lock()
	for gk := range next.Difference(c.users[user]) {
		dropped = append(dropped, c.acquire(gk)...)
	}
	for gk := range c.users[user].Difference(next) {
		c.release(gk)
	}
	c.users[user] = next
	if len(next) == 0 {
		delete(c.users, user)
	}
	c.mu.Unlock()
	c.drop(dropped)
}

func (c *Cache) acquire(gk schema.GroupKind) []objects.Key {
	k := c.kinds[gk]
	if k == nil {
		k = newKind(gk)
		c.kinds[gk] = k
	}

	k.users++
	if k.idle != nil {
		k.idle.Stop()
		k.idle = nil
	}

	return c.sync(k)
}

func (c *Cache) release(gk schema.GroupKind) {
	k := c.kinds[gk]
	if k.users--; k.users == 0 {
		k.idle = panics.After(c.options.Grace, "retiring a watch", func() { c.retire(k) })
	}
}

// retire stops the watch of a kind that is not used.
func (c *Cache) retire(k *kind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k.users > 0 || c.kinds[k.gk] != k {
		return
	}

	delete(c.kinds, k.gk)
	if k.run != nil {
		k.run.stop()
	}
	c.follow(k, nil, false)
}

// held counts memory if Options.Held is set.
func (c *Cache) held(bytes int64) {
	if c.options.Held != nil {
		c.options.Held(bytes)
	}
}

// follow sets the run of a kind, and subtracts the released memory.
func (c *Cache) follow(k *kind, r *run, keep bool) (dropped []objects.Key) {
	dropped = k.follow(r, keep)
	k.mu.Lock()
	defer k.mu.Unlock()
	c.held(k.change())
	return dropped
}

// sync starts, replaces or stops the watch of a kind to match discovery, and returns the dropped
// records. The caller holds c.mu.
func (c *Cache) sync(k *kind) []objects.Key {
	served, err := c.discovery.Find(k.gk)
	switch {
	case c.ctx == nil || errors.Is(err, ErrNotReady):
		return nil
	case served == nil || !served.Watchable:
		if k.run != nil {
			k.run.stop()
			k.run = nil
		}
		return c.follow(k, nil, false)
	case k.run == nil:
		return c.watch(k, served, true)
	case k.run.crd != served.UID:
		return c.watch(k, served, false)
	case k.run.resource != served.Preferred().Resource:
		return c.watch(k, served, true)
	}

	return nil
}

// watch replaces the run of the kind, and returns the dropped records. The caller holds c.mu.
func (c *Cache) watch(k *kind, served *discovery.Kind, keep bool) []objects.Key {
	ctx, stop := context.WithCancel(c.ctx)
	k.relist = 0
	c.runs++
	r := &run{
		cache: c, kind: k, number: c.runs, began: time.Now(),
		resource: served.Preferred().Resource, crd: served.UID, stop: stop, done: make(chan struct{}),
	}

	if k.run != nil {
		k.run.stop()
	}
	before := k.last
	k.run, k.last = r, r
	dropped := c.follow(k, r, keep)
	c.watches.Go(func() {
		_ = panics.Guard(context.Background(), "watching "+r.resource.String(), func() error { r.watch(ctx, before); return nil })
	})

	panics.After(c.options.Pending, "ending the wait for a list", func() {
		if ctx.Err() == nil && !k.complete() {
			c.options.KindChanged(k.gk)
		}
	})
	return dropped
}

// Relist calls Observe with every object of the kind again. Once KindState.Listing is
// not lower than the result, every record was made after this call, or was remembered from
// a write. Concurrent calls share one list.
func (c *Cache) Relist(gk schema.GroupKind) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.kinds[gk]
	switch {
	case k == nil || k.run == nil || c.ctx == nil:
		return c.runs + 1
	case !k.run.observed.Load():
		return k.run.number
	case k.relist != 0:
		return k.relist
	case k.lists() < k.run.number:
		// The present list finishes first, because frequent calls would starve it.
		c.runs++
		k.relist = c.runs
		return k.relist
	}

	c.relist(k)
	return k.run.number
}

// relist starts the watch of a kind again. The caller holds c.mu.
func (c *Cache) relist(k *kind) {
	if served, _ := c.discovery.Find(k.gk); served != nil && served.Watchable {
		c.watch(k, served, true)
	}
}

// completed starts the next list after a complete one, if one is wanted.
func (c *Cache) completed(r *run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := r.kind; k.run == r && k.relist != 0 && c.ctx != nil {
		c.relist(k)
	}
}

// State returns the state of a kind.
func (c *Cache) State(gk schema.GroupKind) KindState {
	served, err := c.discovery.Find(gk)
	if served == nil {
		return KindState{Err: err}
	}

	s := KindState{
		Served: true, Namespaced: served.Namespaced(),
		Version: served.Preferred().Resource.Version, Custom: served.UID != "",
	}

	if !served.Watchable {
		s.Err = ErrNotWatchable
		return s
	}
	if k := c.kind(gk); k != nil {
		k.mu.RLock()
		defer k.mu.RUnlock()
		s.Synced, s.Listing, s.Err = k.synced, k.listing, k.err
		s.Pending = !k.synced && k.err == nil && k.current != nil && time.Since(k.current.began) < c.options.Pending
	}

	return s
}

// Counts returns the number of records of each watched kind.
func (c *Cache) Counts() map[schema.GroupVersionKind]int {
	c.mu.RLock()
	kinds := slices.Collect(maps.Values(c.kinds))
	c.mu.RUnlock()
	counts := map[schema.GroupVersionKind]int{}
	for _, k := range kinds {
		k.mu.RLock()
		if k.current != nil {
			counts[k.gk.WithVersion(k.current.resource.Version)] = k.records.Len()
		}
		k.mu.RUnlock()
	}

	return counts
}

// Passed reports whether the watch of a kind has delivered this resource version or a
// later one.
func (c *Cache) Passed(gk schema.GroupKind, resourceVersion string) bool {
	k := c.kind(gk)
	if k == nil {
		return false
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.records.Passed(resourceVersion)
}

// Get returns the record of an object, which must not be changed; false if there is none.
func (c *Cache) Get(key objects.Key) (*objects.Observed, bool) {
	k := c.kind(key.GroupKind())
	if k == nil {
		return nil, false
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.records.Get(name{Namespace: key.Namespace, Name: key.Name})
}

// Remember stores the record of a response to a write or read of a labelled object, unless
// there is a newer one. The event of this state or a later one replaces it, with Changed.
func (c *Cache) Remember(key objects.Key, obs *objects.Observed) {
	if k := c.kind(key.GroupKind()); k != nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.records.Remember(NameOf(key), obs)
		if k.current != nil {
			k.current.observed.Store(true)
		}
		c.held(k.change())
	}
}

// Gone drops the record of an object whose deletion was confirmed, and ignores its late
// events.
func (c *Cache) Gone(key objects.Key, uid types.UID) {
	if k := c.kind(key.GroupKind()); k != nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.records.Gone(NameOf(key), uid)
		c.held(k.change())
	}
}

// Mapping returns the mapping of a kind; see discovery.Discovery.
func (c *Cache) Mapping(gk schema.GroupKind, version string) (*meta.RESTMapping, error) {
	return c.discovery.Mapping(gk, version)
}

func (c *Cache) kind(gk schema.GroupKind) *kind {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.kinds[gk]
}

// servedChanged is called with kinds whose versions or scope changed.
func (c *Cache) servedChanged(kinds []schema.GroupKind) {
	for _, gk := range kinds {
		var dropped []objects.Key
		c.mu.Lock()
		if k := c.kinds[gk]; k != nil {
			dropped = c.sync(k)
		}
		c.mu.Unlock()
		c.drop(dropped)
		c.options.KindChanged(gk)
	}
}

// used returns the kinds in use.
func (c *Cache) used() []schema.GroupKind {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.Collect(maps.Keys(c.kinds))
}

func (c *Cache) drop(keys []objects.Key) {
	changes := make([]objects.Change, len(keys))
	for i, key := range keys {
		changes[i].Key = key
	}
	c.options.Changed(changes...)
}

func keyOf(gk schema.GroupKind, live metav1.Object) objects.Key {
	return objects.Key{Group: gk.Group, Kind: gk.Kind, Namespace: live.GetNamespace(), Name: live.GetName()}
}
