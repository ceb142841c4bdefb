package tracking

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
)

// owners are the owners by the UIDs in references to them: the UIDs of deployments and of sets.
// They are not safe for concurrent use.
type owners map[types.UID]*objects.OwnerKey

func (o owners) add(key objects.OwnerKey, uids []types.UID) {
	owner := &key
	for _, uid := range uids {
		if known := o[uid]; known != nil && *known == key {
			owner = known
		}
	}

	for _, uid := range uids {
		o[uid] = owner
	}
}

func (o owners) remove(key objects.OwnerKey) {
	maps.DeleteFunc(o, func(_ types.UID, owner *objects.OwnerKey) bool { return *owner == key })
}

// of returns the owner that a reference leads to.
func (o owners) of(ref *objects.Reference) (objects.OwnerKey, bool) {
	if ref == nil || o[ref.UID] == nil {
		return objects.OwnerKey{}, false
	}
	return *o[ref.UID], true
}

// others returns the owners of an object besides the given one.
func (o owners) others(owner objects.OwnerKey, obs *objects.Observed) (others []objects.OwnerKey) {
	if obs == nil {
		return nil
	}

	for i := range obs.Owners {
		if other, known := o.of(&obs.Owners[i]); known && other != owner {
			others = append(others, other)
		}
	}

	return others
}

// strays are objects that an owner controls and no revision contains, or only one without a claim.
// They are not safe for concurrent use.
type strays struct {
	byOwner map[objects.OwnerKey]sets.Set[objects.Key]
	byKey   map[objects.Key]sets.Set[objects.OwnerKey]
}

func newStrays() strays {
	return strays{byOwner: map[objects.OwnerKey]sets.Set[objects.Key]{}, byKey: map[objects.Key]sets.Set[objects.OwnerKey]{}}
}

// add adds a stray, unless the owner has too many. The rest is found again when it changes, or
// after a restart.
func (s strays) add(owner objects.OwnerKey, key objects.Key) {
	if len(s.byOwner[owner]) >= limits.Strays {
		return
	}
	if s.byOwner[owner] == nil {
		s.byOwner[owner] = sets.Set[objects.Key]{}
	}
	if s.byKey[key] == nil {
		s.byKey[key] = sets.Set[objects.OwnerKey]{}
	}
	s.byOwner[owner].Insert(key)
	s.byKey[key].Insert(owner)
}

func (s strays) remove(owner objects.OwnerKey, key objects.Key) {
	if delete(s.byOwner[owner], key); len(s.byOwner[owner]) == 0 {
		delete(s.byOwner, owner)
	}
	if delete(s.byKey[key], owner); len(s.byKey[key]) == 0 {
		delete(s.byKey, key)
	}
}

// of returns the strays of an owner in key order.
func (s strays) of(owner objects.OwnerKey) []objects.Key {
	return slices.SortedFunc(maps.Keys(s.byOwner[owner]), objects.Key.Compare)
}
