package memory

import (
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/objects"
)

// watched is a connection's state of one kind: a list, then events in their order, and its own
// writes until the events show them.
type watched struct {
	records livestate.Records
	synced  bool
	slow    bool // the first list takes so long that it is not awaited
	relist  bool
	listing int64
	next    int   // index of the next event
	seen    int64 // resource version that the watch has reached
}

func (c *Cluster) watch(gk schema.GroupKind) *watched {
	if c.kinds[gk] == nil {
		c.kinds[gk] = &watched{records: livestate.NewRecords()}
	}
	return c.kinds[gk]
}

// Use records which kinds to watch. A watch continues without users.
func (c *Cluster) Use(user string, kinds []schema.GroupKind) {
	c.used[user] = kinds
	for _, gk := range kinds {
		c.watch(gk)
	}
}

// State returns the state of a kind as a whole.
func (c *Cluster) State(gk schema.GroupKind) livestate.KindState {
	k := c.Server.kinds[gk]
	if k == nil || k.Unserved {
		return livestate.KindState{}
	}
	s := livestate.KindState{Served: true, Namespaced: !k.ClusterScoped, Custom: k.Custom, Version: k.Version}
	if w := c.kinds[gk]; w != nil {
		s.Synced, s.Pending, s.Listing = w.synced, !w.synced && !w.slow, w.listing
	}
	return s
}

// Slow lets the first list of a kind take too long to be awaited.
func (c *Cluster) Slow(gk schema.GroupKind) {
	if w := c.kinds[gk]; w != nil && !w.synced && !w.slow {
		w.slow = true
		c.KindChanged(gk)
	}
}

// Observed returns the record of an object.
func (c *Cluster) Observed(key objects.Key) (*objects.Observed, bool) {
	return c.watch(key.GroupKind()).records.Get(livestate.NameOf(key))
}

// Passed reports whether the watch of a kind has reached a resource version.
func (c *Cluster) Passed(gk schema.GroupKind, resourceVersion string) bool {
	return c.watch(gk).records.Passed(resourceVersion)
}

// Seen is the resource version that the watch of a kind has reached.
func (c *Cluster) Seen(gk schema.GroupKind) int64 { return c.watch(gk).seen }

// Relist makes Sync list a kind once more.
func (c *Cluster) Relist(gk schema.GroupKind) int64 {
	w := c.watch(gk)
	w.relist = w.synced
	return w.listing + 1
}

// Remember keeps the response to one of the connection's own requests.
func (c *Cluster) Remember(key objects.Key, obs *objects.Observed) {
	c.watch(key.GroupKind()).records.Remember(livestate.NameOf(key), obs)
}

// Gone drops an object whose deletion was confirmed.
func (c *Cluster) Gone(key objects.Key, uid types.UID) {
	c.watch(key.GroupKind()).records.Gone(livestate.NameOf(key), uid)
}

// Sync lists a kind that is used and was not listed yet, and reports whether it did.
func (c *Cluster) Sync(gk schema.GroupKind) bool {
	w := c.kinds[gk]
	if w == nil || w.synced && !w.relist || !c.Serves(gk) {
		return false
	}

	var list []livestate.Change
	for _, key := range c.Keys() {
		if live := c.Server.Get(key); key.GroupKind() == gk && c.managed(live) {
			list = append(list, livestate.Change{Name: livestate.NameOf(key), Observed: c.observe(key, live)})
		}
	}

	w.synced, w.relist, w.next, w.seen = true, false, len(c.events), c.version
	w.listing++
	var changes []objects.Change
	for _, change := range w.records.Replace(list, strconv.FormatInt(c.version, 10)) {
		key := objects.Key{Group: gk.Group, Kind: gk.Kind, Namespace: change.Name.Namespace, Name: change.Name.Name}
		changes = append(changes, objects.Change{Key: key, Observed: change.Observed})
	}

	c.Changed(changes...)
	c.KindChanged(gk)
	return true
}

// Deliver delivers the next event of a kind, and reports whether there was one.
func (c *Cluster) Deliver(gk schema.GroupKind) bool {
	w := c.kinds[gk]
	if w == nil || !w.synced || w.relist {
		return false
	}

	for w.next < len(c.events) {
		e := c.events[w.next]
		w.next++
		if e.Key.GroupKind() != gk || !c.managed(e.Before) && !c.managed(e.After) {
			continue
		}
		w.seen = e.Version
		version := strconv.FormatInt(e.Version, 10)
		switch {
		case !c.managed(e.After):
			if w.records.Remove(livestate.NameOf(e.Key), e.Before.GetUID(), version) {
				c.Changed(objects.Change{Key: e.Key})
			}
		default:
			if obs := c.observe(e.Key, e.After); w.records.Put(livestate.NameOf(e.Key), obs) {
				c.Changed(objects.Change{Key: e.Key, Observed: obs})
			}
		}
		return true
	}

	return false
}

// Reset forgets a kind, as when its API is removed.
func (c *Cluster) Reset(gk schema.GroupKind) {
	if c.kinds[gk] != nil {
		c.kinds[gk] = &watched{records: livestate.NewRecords(), listing: c.kinds[gk].listing}
	}
	c.KindChanged(gk)
}

func (c *Cluster) observe(key objects.Key, live *unstructured.Unstructured) *objects.Observed {
	obs := c.Observe(key, live.DeepCopy())
	obs.UID, obs.ResourceVersion, obs.Watched = live.GetUID(), live.GetResourceVersion(), true
	return obs
}

// managed reports whether an object has the label of the watch.
func (c *Cluster) managed(live *unstructured.Unstructured) bool {
	return live != nil && c.Names.Shown(live.GroupVersionKind().GroupKind(), live.GetLabels())
}
