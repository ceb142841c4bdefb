package livestate

import (
	"hash/maphash"
	"reflect"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"lockstep.run/lockstep/internal/objects"
)

// name is an object's name within its kind.
type name struct{ namespace, name string }

// nameOf shares the namespace's text between all records.
func nameOf(key objects.Key) name {
	return name{unique.Make(key.Namespace).Value(), key.Name}
}

// change is a record that is new, or gone where obs is nil.
type change struct {
	name name
	obs  *objects.Observed
}

// records are what is known of the objects of one kind. It is a plain value;
// the caller locks it.
//
// Two sources meet here: the watch, whose events come in the order of resource
// versions, and responses to our own writes, which come earlier or later than
// the events that they cause. Resource versions decide which is newer.
type records struct {
	byName map[name]*objects.Observed
	// gone are UIDs whose deletion was confirmed and whose DELETED event is still
	// to come, with the resource version of the state that was known last.
	gone     map[types.UID]string
	progress Progress
	// owners are the owner references that were stored lately, in places by the UID of
	// the first: objects of one deployment have the same, and come among those of others.
	owners [128][]metav1.OwnerReference
	seed   maphash.Seed
}

func newRecords() records {
	return records{byName: map[name]*objects.Observed{}, gone: map[types.UID]string{}, seed: maphash.MakeSeed()}
}

// put stores what an event tells, and reports whether that is news.
func (r *records) put(n name, obs *objects.Observed) bool {
	r.progress.Advance(obs.ResourceVersion)
	if _, gone := r.gone[obs.UID]; gone {
		return false
	}
	old := r.byName[n]
	if old != nil && !old.Watched && later(old.ResourceVersion, obs.ResourceVersion) {
		// We have written since; the event of that write follows.
		return false
	}
	r.share(old, obs)
	r.byName[n] = obs
	return !same(old, obs)
}

// confirm notes that the watch has delivered a state of which there is a record,
// and reports whether that is news.
func (r *records) confirm(n name, uid types.UID, resourceVersion string) (*objects.Observed, bool) {
	r.progress.Advance(resourceVersion)
	old := r.byName[n]
	if old == nil || old.UID != uid || old.ResourceVersion != resourceVersion || old.Watched {
		return nil, false // we have written or deleted since
	}
	seen := *old
	seen.Watched = true
	r.byName[n] = &seen
	return &seen, true
}

// remove drops what a DELETED event names, and reports whether that is news.
func (r *records) remove(n name, uid types.UID, resourceVersion string) bool {
	r.progress.Advance(resourceVersion)
	if known, gone := r.gone[uid]; gone {
		if !later(known, resourceVersion) {
			// Else it is from before: the object had lost its label for a while.
			delete(r.gone, uid)
		}
		return false
	}
	old := r.byName[n]
	if old == nil || old.UID != uid {
		return false
	}
	if !old.Watched && later(old.ResourceVersion, resourceVersion) {
		// It had lost its label, and our write has put it back.
		return false
	}
	delete(r.byName, n)
	return true
}

// replace takes over a list of all objects, and returns what is news. A record
// of our own write that is newer than the list stays, unless resource versions
// went back: then the store was restored from a backup, and no record of the
// time before counts.
func (r *records) replace(list []change, resourceVersion string) []change {
	ahead := r.progress.Restart(resourceVersion)
	newer := func(old *objects.Observed, than string) bool {
		return ahead && !old.Watched && later(old.ResourceVersion, than)
	}
	var news []change
	next := make(map[name]*objects.Observed, len(list))
	gone := map[types.UID]string{}
	for _, item := range list {
		if known, is := r.gone[item.obs.UID]; is {
			gone[item.obs.UID] = known
			continue
		}
		old := r.byName[item.name]
		if old != nil && newer(old, item.obs.ResourceVersion) {
			next[item.name] = old
			continue
		}
		r.share(old, item.obs)
		next[item.name] = item.obs
		if !same(old, item.obs) {
			news = append(news, item)
		}
	}
	for n, old := range r.byName {
		if _, listed := next[n]; listed {
			continue
		}
		if newer(old, resourceVersion) {
			next[n] = old
			continue
		}
		news = append(news, change{name: n})
	}
	r.byName, r.gone = next, gone
	return news
}

// remember stores the response to a write of ours, or to a read, unless the
// watch is known to be further.
func (r *records) remember(n name, obs *objects.Observed) {
	if _, gone := r.gone[obs.UID]; gone {
		return
	}
	old := r.byName[n]
	if old == nil {
		if r.progress.Passed(obs.ResourceVersion) {
			// The watch has passed that state, and the object is not there any more.
			return
		}
	} else if old.ResourceVersion != obs.ResourceVersion && !obs.NewerThan(old) {
		return
	}
	kept := *obs
	// The same state, seen through another template, is as good as before.
	kept.Watched = old != nil && old.UID == obs.UID && old.ResourceVersion == obs.ResourceVersion && old.Watched
	r.share(old, &kept)
	r.byName[n] = &kept
}

// confirmGone drops an object whose deletion was confirmed. Events on their way
// are ignored from then on; there are some only where there still is a record.
func (r *records) confirmGone(n name, uid types.UID) {
	if old := r.byName[n]; old != nil && old.UID == uid {
		delete(r.byName, n)
		r.gone[uid] = old.ResourceVersion
	}
}

// share makes equal parts of records use the same memory.
func (r *records) share(old, obs *objects.Observed) {
	if old != nil {
		if old.UID == obs.UID {
			obs.UID = old.UID
		}
		if equalOwners(old.Owners, obs.Owners) {
			obs.Owners = old.Owners
			return
		}
	}
	if len(obs.Owners) == 0 {
		return
	}
	lately := &r.owners[maphash.String(r.seed, string(obs.Owners[0].UID))%uint64(len(r.owners))]
	if equalOwners(*lately, obs.Owners) {
		obs.Owners = *lately
	}
	*lately = obs.Owners
}

// same reports whether both records say the same. What Observe makes of the same
// state of an object changes with what it is asked for.
func same(a, b *objects.Observed) bool {
	return a != nil && a.ResourceVersion == b.ResourceVersion && reflect.DeepEqual(a, b)
}

func equalOwners(a, b []metav1.OwnerReference) bool {
	if len(a) != len(b) {
		return false
	}
	is := func(p *bool) bool { return p != nil && *p }
	for i := range a {
		x, y := &a[i], &b[i]
		if x.UID != y.UID || x.Name != y.Name || x.Kind != y.Kind || x.APIVersion != y.APIVersion ||
			is(x.Controller) != is(y.Controller) || is(x.BlockOwnerDeletion) != is(y.BlockOwnerDeletion) {
			return false
		}
	}
	return true
}

// later reports whether resource version a is known to be newer than b.
func later(a, b string) bool {
	x, okX := number(a)
	y, okY := number(b)
	return okX && okY && x > y
}
