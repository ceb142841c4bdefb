package livestate

import (
	"hash/maphash"
	"reflect"
	"unique"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"lockstep.run/lockstep/internal/cluster/reflector"
	"lockstep.run/lockstep/internal/objects"
)

// name is an object's name within its kind.
type name = types.NamespacedName

// NameOf returns a name whose namespace is interned.
func NameOf(key objects.Key) types.NamespacedName {
	return name{Namespace: unique.Make(key.Namespace).Value(), Name: key.Name}
}

// Change is a new record, or a dropped one if Observed is nil.
type Change struct {
	Name     name
	Observed *objects.Observed
}

// Records are the records of the objects of one kind. They come from the events of a watch, in
// the order of resource versions, and from responses to writes, before or after their events.
// Resource versions decide which is newer. The caller locks them.
type Records struct {
	byName map[name]*objects.Observed
	// gone are the last known resource versions of UIDs whose deletion was confirmed before
	// their DELETED event.
	gone     map[types.UID]string
	progress reflector.Progress
	// owners interns recently stored owner references, by the hash of the first UID.
	owners [128][]objects.Reference
	seed   maphash.Seed
	// weight is the approximate memory of all records.
	weight int64
}

// NewRecords returns empty records.
func NewRecords() Records {
	return Records{byName: map[name]*objects.Observed{}, gone: map[types.UID]string{}, seed: maphash.MakeSeed()}
}

// Get returns the record of an object.
func (r *Records) Get(n name) (*objects.Observed, bool) {
	obs, ok := r.byName[n]
	return obs, ok
}

// Len returns the number of records.
func (r *Records) Len() int { return len(r.byName) }

// Passed reports whether the watch has delivered this resource version or a later one.
func (r *Records) Passed(resourceVersion string) bool { return r.progress.Reached(resourceVersion) }

// Put stores the state of an event, and reports whether it differs from the record.
func (r *Records) Put(n name, obs *objects.Observed) bool {
	r.progress.Advance(obs.ResourceVersion)
	if _, gone := r.gone[obs.UID]; gone {
		return false
	}

	old := r.byName[n]
	if old != nil && !old.Watched && later(old.ResourceVersion, obs.ResourceVersion) {
		// The event of a newer write follows.
		return false
	}

	r.share(old, obs)
	r.set(n, obs)
	return !same(old, obs)
}

// confirm marks the record of a state as delivered by the watch, and returns it if that
// changes it.
func (r *Records) confirm(n name, uid types.UID, resourceVersion string) (*objects.Observed, bool) {
	r.progress.Advance(resourceVersion)
	old := r.byName[n]
	if old == nil || old.UID != uid || old.ResourceVersion != resourceVersion || old.Watched {
		return nil, false // written or deleted since
	}

	seen := *old
	seen.Watched = true
	r.set(n, &seen)
	return &seen, true
}

// Remove drops the object of a DELETED event, and reports whether there was a record.
func (r *Records) Remove(n name, uid types.UID, resourceVersion string) bool {
	r.progress.Advance(resourceVersion)
	if known, gone := r.gone[uid]; gone {
		if !later(known, resourceVersion) {
			// Otherwise the object had only lost its label for a while.
			delete(r.gone, uid)
		}
		return false
	}

	old := r.byName[n]
	if old == nil || old.UID != uid {
		return false
	}
	if !old.Watched && later(old.ResourceVersion, resourceVersion) {
		// It had lost its label, and a write has put it back.
		return false
	}

	r.drop(n)
	return true
}

// Replace stores a list of all objects, and returns the changes. A record of a write that is newer
// than the list stays, unless the API server was restored from a backup.
func (r *Records) Replace(list []Change, resourceVersion string) []Change {
	ahead := r.progress.Restart(resourceVersion)
	newer := func(old *objects.Observed, than string) bool {
		return ahead && !old.Watched && later(old.ResourceVersion, than)
	}
	var changes []Change
	next := make(map[name]*objects.Observed, len(list))
	gone := map[types.UID]string{}
	for _, item := range list {
		if known, is := r.gone[item.Observed.UID]; is {
			gone[item.Observed.UID] = known
			continue
		}
		old := r.byName[item.Name]
		if old != nil && newer(old, item.Observed.ResourceVersion) {
			next[item.Name] = old
			continue
		}
		r.share(old, item.Observed)
		next[item.Name] = item.Observed
		if !same(old, item.Observed) {
			changes = append(changes, item)
		}
	}

	for n, old := range r.byName {
		if _, listed := next[n]; listed {
			continue
		}
		if newer(old, resourceVersion) {
			next[n] = old
		} else {
			changes = append(changes, Change{Name: n})
		}
	}

	r.byName, r.gone, r.weight = next, gone, 0
	for n, obs := range next {
		r.weight += weigh(n, obs)
	}

	return changes
}

// Remember stores the response to a write or a read, unless the watch is further.
func (r *Records) Remember(n name, obs *objects.Observed) {
	if _, gone := r.gone[obs.UID]; gone {
		return
	}

	old := r.byName[n]
	if old == nil {
		if r.progress.Reached(obs.ResourceVersion) {
			// The object was deleted since.
			return
		}
	} else if old.ResourceVersion != obs.ResourceVersion && !obs.NewerThan(old) {
		return
	}

	kept := *obs
	kept.Watched = old != nil && old.UID == obs.UID && old.ResourceVersion == obs.ResourceVersion && old.Watched
	r.share(old, &kept)
	r.set(n, &kept)
}

// Gone drops an object whose deletion was confirmed, and ignores its late events.
func (r *Records) Gone(n name, uid types.UID) {
	if old := r.byName[n]; old != nil && old.UID == uid {
		r.drop(n)
		r.gone[uid] = old.ResourceVersion
	}
}

// set stores a record, and drop removes it.
func (r *Records) set(n name, obs *objects.Observed) {
	r.weight += weigh(n, obs) - weigh(n, r.byName[n])
	r.byName[n] = obs
}

func (r *Records) drop(n name) {
	r.weight -= weigh(n, r.byName[n])
	delete(r.byName, n)
}

// recordBytes and ownerBytes are the memory of a record and an owner without their texts.
const recordBytes, ownerBytes = 400, 120

// weigh returns the approximate memory of a record; 0 for none.
func weigh(n name, obs *objects.Observed) int64 {
	if obs == nil {
		return 0
	}

	bytes := recordBytes + len(n.Name) + len(obs.UID) + len(obs.ResourceVersion) + len(obs.Held) + len(obs.Writer) + len(obs.AdoptableBy) + len(obs.Trimmed)
	for i := range obs.Owners {
		o := &obs.Owners[i]
		bytes += ownerBytes + len(o.APIVersion) + len(o.Kind) + len(o.Namespace) + len(o.Name) + len(o.UID)
	}

	return int64(bytes)
}

// share interns the UID and the owner references of a record.
func (r *Records) share(old, obs *objects.Observed) {
	if old != nil && old.UID == obs.UID {
		obs.UID = old.UID
	}
	if len(obs.Owners) == 0 {
		return
	}

	lately := &r.owners[maphash.String(r.seed, string(obs.Owners[0].UID))%uint64(len(r.owners))]
	switch {
	case old != nil && reflect.DeepEqual(old.Owners, obs.Owners):
		obs.Owners = old.Owners
	case reflect.DeepEqual(*lately, obs.Owners):
		obs.Owners = *lately
	}

	*lately = obs.Owners
}

// same reports whether two records are equal.
func same(a, b *objects.Observed) bool {
	return a != nil && a.ResourceVersion == b.ResourceVersion && reflect.DeepEqual(a, b)
}

// later reports whether resource version a is known to be newer than b.
func later(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}
