package tracking

import (
	"maps"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases/drift"
)

// Tracker records the owner of every managed object and the template it is compared with,
// and enqueues the owner when the object changes. It is safe for concurrent use.
type Tracker struct {
	// Wake enqueues an owner. It must be set before the first watch starts.
	Wake func(objects.OwnerKey)
	// Served reports whether an API version of a kind is served; nil means that all are.
	// It must not block.
	Served func(gk schema.GroupKind, apiVersion string) bool

	// Keep receives the number of bytes to keep of a live object above a small size; 0 releases
	// them. It reports whether there is room. There always is for fewer bytes than before. A nil
	// Keep means that there is room for all.
	Keep func(key objects.Key, bytes int64) bool

	// Names are the names of the objects.
	Names *objects.Names
	probedFields
	kindUsers
	kept      kept
	listTypes *drift.ListTypesCache

	// mu guards the fields below together, because an event is compared with the track and the
	// owner of the same moment.
	mu       sync.RWMutex
	tracks   tracks
	owners   owners
	remote   map[objects.OwnerKey]objects.Owner // of owners those in another cluster
	strays   strays
	unowned  map[objects.Key]unowned
	finished map[objects.Key]objects.Finished // Jobs
}

// unowned is an object whose owner is not known.
type unowned struct {
	controller objects.Reference
	wrote      bool // wrote of its record
}

// New returns an empty tracker of objects with these names.
func New(names *objects.Names) *Tracker {
	return &Tracker{
		Names:        names,
		listTypes:    drift.NewListTypesCache(),
		probedFields: probedFields{kinds: map[schema.GroupKind]map[string]*fieldSet{}},
		kept:         kept{keys: sets.Set[objects.Key]{}},
		kindUsers:    kindUsers{owners: map[schema.GroupKind]sets.Set[objects.OwnerKey]{}},
		tracks:       tracks{byKey: map[objects.Key]track{}},
		owners:       owners{},
		remote:       map[objects.OwnerKey]objects.Owner{},
		strays:       newStrays(),
		unowned:      map[objects.Key]unowned{},
		finished:     map[objects.Key]objects.Finished{},
	}
}

// TemplateID names the full template that desired and metadata make.
func TemplateID(d *objects.Desired, labels objects.Digest, owner objects.Owner) objects.Digest {
	return drift.Digest([]any{string(d.Content[:]), string(labels[:]), string(owner.UID)})
}

// Track makes changes of an object enqueue owner, and compares its live values with desired and
// metadata.
func (t *Tracker) Track(owner objects.OwnerKey, d *objects.Desired, metadata objects.ManagedMetadata, template objects.Digest) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tracks.add(owner, d, metadata, template)
}

// Untrack forgets an object if owner tracks it.
func (t *Tracker) Untrack(owner objects.OwnerKey, key objects.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.tracks.of(owner, key); ok {
		delete(t.tracks.byKey, key)
		delete(t.finished, key)
	}
}

// Tracks reports whether owner tracks an object.
func (t *Tracker) Tracks(owner objects.OwnerKey, key objects.Key) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	_, ok := t.tracks.of(owner, key)
	return ok
}

// Template returns the object that live values of key are compared with, or nil if owner does not
// track it.
func (t *Tracker) Template(owner objects.OwnerKey, key objects.Key) (map[string]any, error) {
	t.mu.RLock()
	tr, ok := t.tracks.of(owner, key)
	t.mu.RUnlock()
	if !ok {
		return nil, nil
	}
	return tr.desired.Object(tr.metadata)
}

// Own makes owner references with one of the UIDs, the deployment's and its sets', lead to owner.
// Objects that came before become strays.
func (t *Tracker) Own(owner objects.Owner, uids ...types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.owners.add(owner.OwnerKey, uids)
	if owner.Remote() {
		t.remote[owner.OwnerKey] = owner
	}

	for key, object := range t.unowned {
		if by, known := t.controlledBy(&object.controller); known {
			if t.mayWrite(by, key, object.wrote) {
				t.strays.add(by, key)
			}
			delete(t.unowned, key)
		}
	}
}

// mayWrite reports whether an object that names an owner might be one that it wrote: it is in the
// owner's namespace, or managedFields show it, and the owner has objects in other namespaces. Every
// client can read the UID of a cluster-scoped owner on each of its objects. t.mu is held.
func (t *Tracker) mayWrite(owner objects.OwnerKey, key objects.Key, wrote bool) bool {
	_, remote := t.remote[owner]
	return wrote && (owner.Namespace == "" || remote) || owner.Namespace == key.Namespace && !remote
}

// readsIn returns the namespace of the objects of an owner; "" for any. t.mu is held.
func (t *Tracker) readsIn(owner objects.OwnerKey) string {
	if _, remote := t.remote[owner]; remote {
		return ""
	}
	return owner.Namespace
}

// controlledBy returns the owner of a controller reference: in another cluster also an owner of the
// same name, which was restored from a backup. t.mu is held.
func (t *Tracker) controlledBy(controller *objects.Reference) (objects.OwnerKey, bool) {
	owner, known := t.owners.of(controller)
	if known || controller == nil || !controller.Remote {
		return owner, known
	}
	remote := t.remote[objects.OwnerKey{Kind: controller.Kind, Namespace: controller.Namespace, Name: controller.Name}]
	return remote.OwnerKey, remote.SameName(controller)
}

// Disown forgets everything about an owner.
func (t *Tracker) Disown(owner objects.OwnerKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Probe(owner, t.readsIn(owner), nil)
	t.Use(owner, nil)
	for key := range t.strays.byOwner[owner] {
		t.strays.remove(owner, key)
	}

	delete(t.remote, owner)
	t.owners.remove(owner)
	for key, tr := range t.tracks.byKey {
		if tr.owner == owner {
			delete(t.tracks.byKey, key)
			delete(t.finished, key)
			t.release(key)
		}
	}
}

// KindChanged enqueues the owners that have objects of a kind: its API or its watch came
// or went.
func (t *Tracker) KindChanged(gk schema.GroupKind) {
	for _, owner := range t.kindUsers.of(gk) {
		t.Wake(owner)
	}
}

// Changed enqueues the owners of objects, each once after all changes: an owner that is enqueued
// while a list is handled could be reconciled again for each of its objects. The owners of edited
// objects come first, because after a start all other objects are in a list, too.
func (t *Tracker) Changed(changes ...objects.Change) {
	var owners []objects.OwnerKey
	seen := sets.Set[objects.OwnerKey]{}
	for _, first := range []bool{true, false} {
		for _, c := range changes {
			if c.Observed.Edited() != first {
				continue
			}
			for _, owner := range t.changed(c.Key, c.Observed) {
				if !seen.Has(owner) {
					seen.Insert(owner)
					owners = append(owners, owner)
				}
			}
		}
	}

	for _, owner := range owners {
		t.Wake(owner)
	}
}

// changed returns the owners that a change of an object concerns. An object that is not tracked but
// has a controller among the owners is a stray, from a write that came late. Former controllers are
// concerned, too: the ones among its owner references, because a successor took the object from a
// lone set, and once also the ones that it was a stray of, if it was deleted or has another
// controller.
func (t *Tracker) changed(key objects.Key, obs *objects.Observed) (owners []objects.OwnerKey) {
	if obs == nil {
		t.release(key)
	}

	t.mu.Lock()
	defer t.mu.Unlock()
	var owner objects.OwnerKey
	tr, known := t.tracks.byKey[key]
	if known {
		owner = tr.owner
	} else {
		owner, known = t.untracked(key, obs)
	}

	if known {
		owners = append(owners, owner)
	}
	return append(append(owners, t.owners.others(owner, obs)...), t.formerOwners(key, obs, owner)...)
}

// Gone records that an object does not exist, as confirmed.
func (t *Tracker) Gone(key objects.Key) { t.release(key) }

// WakeOther enqueues another owner that waits for an object that this one has removed, because the
// watch does not report that to either.
func (t *Tracker) WakeOther(owner objects.OwnerKey, key objects.Key) {
	t.mu.RLock()
	tr, known := t.tracks.byKey[key]
	t.mu.RUnlock()
	if known && tr.owner != owner {
		t.Wake(tr.owner)
	}
}

// formerOwners returns the other owners that an object is a stray of. If there is nothing to
// release, it stops being one, so that a client that changes controllers, or creates and deletes
// objects, does not grow the memory. t.mu is held.
func (t *Tracker) formerOwners(key objects.Key, obs *objects.Observed, owner objects.OwnerKey) (former []objects.OwnerKey) {
	for other := range t.strays.byKey[key] {
		if other != owner {
			former = append(former, other)
		}
		if obs == nil || obs.Controller() != nil && !t.controls(other, obs) {
			t.strays.remove(other, key)
		}
	}

	return former
}

func (t *Tracker) controls(owner objects.OwnerKey, obs *objects.Observed) bool {
	by, known := t.controlledBy(obs.Controller())
	return known && by == owner
}

// untracked returns the owner of an object that no revision contains, which becomes a stray. If the
// owner is unknown, the stray is kept until it is known. t.mu is held.
func (t *Tracker) untracked(key objects.Key, obs *objects.Observed) (objects.OwnerKey, bool) {
	delete(t.unowned, key)
	if obs == nil || strings.HasSuffix(key.Group, t.Names.GroupVersion.Group) {
		return objects.OwnerKey{}, false
	}

	controller := obs.Controller()
	owner, known := t.controlledBy(controller)
	switch {
	case known && !t.mayWrite(owner, key, obs.Wrote):
		return objects.OwnerKey{}, false
	case known:
		t.strays.add(owner, key)
	case controller != nil && (controller.Remote || strings.HasPrefix(controller.APIVersion, t.Names.GroupVersion.Group+"/")):
		t.unowned[key] = unowned{*controller, obs.Wrote}
	}

	return owner, known
}

// Strays returns the strays of an owner in key order.
func (t *Tracker) Strays(owner objects.OwnerKey) []objects.Key {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.strays.of(owner)
}

// ForgetStray forgets a stray that was removed.
func (t *Tracker) ForgetStray(owner objects.OwnerKey, key objects.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.strays.remove(owner, key)
}

// tracks are the owners and templates that objects are compared with. They are not safe
// for concurrent use.
type tracks struct {
	byKey map[objects.Key]track
	last  *tracked
}

// track is the template that one object is compared with.
type track struct {
	*tracked
	desired  *objects.Desired
	template objects.Digest
}

// tracked is shared by objects that were tracked in succession.
type tracked struct {
	owner    objects.OwnerKey
	metadata objects.ManagedMetadata
}

func (t *tracks) add(owner objects.OwnerKey, d *objects.Desired, metadata objects.ManagedMetadata, template objects.Digest) {
	if last := t.last; last == nil || last.owner != owner || last.metadata.Revision != metadata.Revision ||
		last.metadata.Owner != metadata.Owner || last.metadata.Unnumbered != metadata.Unnumbered || !maps.Equal(last.metadata.Labels, metadata.Labels) {
		t.last = &tracked{owner: owner, metadata: metadata}
	}
	t.byKey[d.Key] = track{tracked: t.last, desired: d, template: template}
}

// of returns the track of an object if it is the owner's.
func (t *tracks) of(owner objects.OwnerKey, key objects.Key) (track, bool) {
	tr, ok := t.byKey[key]
	return tr, ok && tr.owner == owner
}
