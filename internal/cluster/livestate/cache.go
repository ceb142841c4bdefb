package livestate

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
)

// Options are what a Cache works with. The functions are called on goroutines
// of the Cache, for different kinds at the same time, and must not block.
type Options struct {
	// Config is the cluster, and the identity that watches.
	Config *rest.Config
	// Selector limits watches by label; empty means the label of the engine.
	Selector string
	// Observe turns a full live object into the record that is kept; nil means
	// that its metadata is enough. The object is released afterwards. UID,
	// ResourceVersion and Watched are filled in.
	Observe func(key objects.Key, live *unstructured.Unstructured) *objects.Observed
	// Changed is called after the record of an object changed because of the
	// watch; not for Remember and Gone. obs is nil where the object left the
	// watch: it was deleted, lost its label, or its API went: a reason to
	// confirm. What counts is what Get returns then.
	Changed func(key objects.Key, obs *objects.Observed)
	// KindChanged is called after the KindState of a kind changed, also of kinds
	// that are not in use where it is about being served.
	KindChanged func(gk schema.GroupKind)
	// VersionChanged is called when the API server turned out to have another
	// version than before. It may be nil.
	VersionChanged func(v version.Info)
	// Log receives what no caller can be told; it may be the zero value.
	Log logr.Logger
	// Grace is how long an unused watch goes on; 0 means limits.WatchGrace.
	Grace time.Duration
}

// Cache keeps records of live objects up to date. It is safe for concurrent
// use.
type Cache struct {
	options Options
	clients *clients
	served  *served
	refresh *refresher

	// streams are the goroutines of watches.
	streams sync.WaitGroup

	mu sync.RWMutex
	// ctx is that of Start; nil before and after.
	ctx   context.Context
	kinds map[schema.GroupKind]*kind
	users map[string]map[schema.GroupKind]struct{}
	// runs counts all runs of all kinds.
	runs int64
}

// New returns a Cache that works from Start on.
func New(options Options) (*Cache, error) {
	if options.Observe == nil || options.Changed == nil || options.KindChanged == nil {
		return nil, errors.New("livestate: Observe, Changed and KindChanged are required")
	}
	if options.Selector == "" {
		options.Selector = corev1alpha1.CacheLabel + "=" + corev1alpha1.CacheLabelValue
	}
	if options.Grace == 0 {
		options.Grace = limits.WatchGrace
	}
	clients, err := newClients(options.Config)
	if err != nil {
		return nil, err
	}
	c := &Cache{
		options: options, clients: clients, served: newServed(),
		kinds: map[schema.GroupKind]*kind{}, users: map[string]map[schema.GroupKind]struct{}{},
	}
	c.refresh = newRefresher(c)
	return c, nil
}

// NeedLeaderElection reports whether only the leader watches.
func (c *Cache) NeedLeaderElection() bool { return true }

// Start watches until the context ends. It is called once.
func (c *Cache) Start(ctx context.Context) error {
	// What the Reflector says is for debugging: errors are in KindState.
	ctx = logr.NewContext(ctx, c.options.Log.V(1))
	c.mu.Lock()
	c.ctx = ctx
	c.mu.Unlock()
	c.refresh.run(ctx)

	c.mu.Lock()
	c.ctx = nil
	for _, k := range c.kinds {
		if k.idle != nil {
			k.idle.Stop()
		}
	}
	c.mu.Unlock()
	ended := make(chan struct{})
	go func() { c.streams.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(limits.StopWait):
	}
	return nil
}

// Use replaces the set of kinds that the user needs to be watched; none means
// that there is no such user any more.
func (c *Cache) Use(user string, kinds []schema.GroupKind) {
	next := make(map[schema.GroupKind]struct{}, len(kinds))
	for _, gk := range kinds {
		next[gk] = struct{}{}
	}
	var dropped []objects.Key
	c.mu.Lock()
	for gk := range next {
		if _, had := c.users[user][gk]; !had {
			dropped = append(dropped, c.acquire(gk)...)
		}
	}
	for gk := range c.users[user] {
		if _, has := next[gk]; !has {
			c.release(gk)
		}
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
	return c.settle(k)
}

func (c *Cache) release(gk schema.GroupKind) {
	k := c.kinds[gk]
	if k.users--; k.users == 0 {
		k.idle = time.AfterFunc(c.options.Grace, func() { c.retire(k) })
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
	k.follow(nil, false)
}

// settle makes the watch of a kind fit what is served, and returns the records
// that were dropped by that. The caller holds c.mu.
func (c *Cache) settle(k *kind) []objects.Key {
	e, err := c.served.find(k.gk)
	switch {
	case c.ctx == nil || errors.Is(err, ErrNotReady):
		return nil
	case e == nil || !e.watchable:
		if k.run != nil {
			k.run.stop()
			k.run = nil
		}
		return k.follow(nil, false)
	case k.run == nil:
		return c.watch(k, e, true)
	case k.run.identity != e.identity:
		return c.watch(k, e, false)
	case k.run.mapping.Resource != e.preferred().Resource:
		return c.watch(k, e, true)
	}
	return nil
}

// watch starts a run of the kind in place of the present one. The caller holds
// c.mu.
func (c *Cache) watch(k *kind, e *entry, keep bool) []objects.Key {
	ctx, stop := context.WithCancel(c.ctx)
	k.relist = 0
	c.runs++
	r := &run{
		cache: c, kind: k, number: c.runs, began: time.Now(),
		mapping: e.preferred(), identity: e.identity,
		stop: stop, done: make(chan struct{}),
	}
	if k.run != nil {
		k.run.stop()
	}
	before := k.last
	k.run, k.last = r, r
	dropped := k.follow(r, keep)
	c.streams.Go(func() { r.watch(ctx, before) })
	return dropped
}

// Relist has Observe see every object of the kind again. It returns a number:
// once KindState.Listing is not lower, every record was made after this call,
// or was remembered from a write. Calls that come close to each other share one
// list.
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
		// What is being listed at present is finished first: another one that came
		// every moment would keep it from ever being complete.
		c.runs++
		k.relist = c.runs
		return k.relist
	}
	c.relist(k)
	return k.run.number
}

// relist starts the watch of a kind again. The caller holds c.mu.
func (c *Cache) relist(k *kind) {
	if e, _ := c.served.find(k.gk); e != nil && e.watchable {
		c.watch(k, e, true)
	}
}

// completed follows up a complete list with the next one, where that is wanted.
func (c *Cache) completed(r *run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := r.kind; k.run == r && k.relist != 0 && c.ctx != nil {
		c.relist(k)
	}
}

// State returns what is known of the kind as a whole.
func (c *Cache) State(gk schema.GroupKind) KindState {
	e, err := c.served.find(gk)
	if e == nil {
		return KindState{Err: err}
	}
	var s KindState
	s.Served, s.Namespaced, s.Terminating = true, e.namespaced(), e.terminating
	s.Version, s.Custom = e.preferred().Resource.Version, e.identity != ""
	if !e.watchable {
		s.Err = ErrNotWatchable
		return s
	}
	if k := c.kind(gk); k != nil {
		k.mu.RLock()
		defer k.mu.RUnlock()
		s.Synced, s.Listing, s.Err = k.synced, k.listing, k.err
	}
	return s
}

// Passed reports whether the watch of a kind has delivered this resource version or a
// later one: what Get returns of the kind is then from that moment or a later one, where
// both versions are of the same store. A version that is no number was not passed.
func (c *Cache) Passed(gk schema.GroupKind, resourceVersion string) bool {
	k := c.kind(gk)
	if k == nil {
		return false
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.records.progress.Passed(resourceVersion)
}

// Get returns the record of an object. It must not be changed. False means that
// there is none: with a synced kind, that the object is not in the watch.
func (c *Cache) Get(key objects.Key) (*objects.Observed, bool) {
	k := c.kind(key.GroupKind())
	if k == nil {
		return nil, false
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	obs, ok := k.records.byName[name{key.Namespace, key.Name}]
	return obs, ok
}

// All goes through the records of a kind as they are at the call, in no order.
func (c *Cache) All(gk schema.GroupKind) iter.Seq2[objects.Key, *objects.Observed] {
	var all []change
	k := c.kind(gk)
	if k != nil {
		k.mu.RLock()
		all = make([]change, 0, len(k.records.byName))
		for n, obs := range k.records.byName {
			all = append(all, change{n, obs})
		}
		k.mu.RUnlock()
	}
	return func(yield func(objects.Key, *objects.Observed) bool) {
		for _, one := range all {
			if !yield(k.key(one.name), one.obs) {
				return
			}
		}
	}
}

// Remember keeps the record of a response to our own write (or to a read) of an
// object with the label of the watch, not Watched, unless a newer one is known.
// Late events do not overwrite it; the event of the same state or of a later
// one does, with Changed. Kinds that are not in use remember nothing.
func (c *Cache) Remember(key objects.Key, obs *objects.Observed) {
	if k := c.kind(key.GroupKind()); k != nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.records.remember(nameOf(key), obs)
		if k.current != nil {
			k.current.observed.Store(true)
		}
	}
}

// Gone drops the record of an object whose deletion was confirmed, and ignores
// its late events, the DELETED one included. A later object of that name has
// another UID and is not concerned.
func (c *Cache) Gone(key objects.Key, uid types.UID) {
	if k := c.kind(key.GroupKind()); k != nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.records.confirmGone(nameOf(key), uid)
	}
}

// Mapping returns the mapping of a kind in the given version, or in the
// preferred one where it is empty. It sends no request. The error is a
// NoKindMatchError (meta.IsNoMatchError) where the kind or the version is not
// served, and ErrNotReady or that of an unavailable API where this is not known.
func (c *Cache) Mapping(gk schema.GroupKind, version string) (*meta.RESTMapping, error) {
	return c.served.mapping(gk, version)
}

// ServerVersion returns the API server's version; false while it is not known.
func (c *Cache) ServerVersion() (version.Info, bool) {
	v := c.refresh.version.Load()
	if v == nil {
		return version.Info{}, false
	}
	return *v, true
}

func (c *Cache) kind(gk schema.GroupKind) *kind {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.kinds[gk]
}

// servedChanged follows a change of what is served.
func (c *Cache) servedChanged(kinds []schema.GroupKind) {
	for _, gk := range kinds {
		var dropped []objects.Key
		c.mu.Lock()
		if k := c.kinds[gk]; k != nil {
			dropped = c.settle(k)
		}
		c.mu.Unlock()
		c.drop(dropped)
		c.kindChanged(gk)
	}
}

// used returns the kinds in use.
func (c *Cache) used() []schema.GroupKind {
	c.mu.RLock()
	defer c.mu.RUnlock()
	kinds := make([]schema.GroupKind, 0, len(c.kinds))
	for gk := range c.kinds {
		kinds = append(kinds, gk)
	}
	return kinds
}

func (c *Cache) drop(keys []objects.Key) {
	for _, key := range keys {
		c.changed(key, nil)
	}
}

func (c *Cache) changed(key objects.Key, obs *objects.Observed) { c.options.Changed(key, obs) }

func (c *Cache) kindChanged(gk schema.GroupKind) { c.options.KindChanged(gk) }

func keyOf(gk schema.GroupKind, live metav1.Object) objects.Key {
	return objects.Key{Group: gk.Group, Kind: gk.Kind, Namespace: live.GetNamespace(), Name: live.GetName()}
}
