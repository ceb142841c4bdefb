package rollout

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases/drift"
	"lockstep.run/lockstep/internal/probes"
)

// Tracker knows of every managed object whose it is and which template it is
// compared with, and wakes its owner when it changes. It is safe for concurrent
// use: the watches of all kinds call it.
type Tracker struct {
	// Wake is called when something about an owner's objects changed.
	Wake func(objects.OwnerKey)
	// Served reports whether an API version of a kind is served; nil takes every one
	// for served. It must not block.
	Served func(gk schema.GroupKind, apiVersion string) bool

	shapes *drift.ListTypes

	mu     sync.RWMutex
	tracks map[objects.Key]track
	last   *follower
	owners map[types.UID]*objects.OwnerKey // deployments and sets by UID
	trims  map[schema.GroupKind]trimming   // what records keep for probes, by kind
	number uint32                          // that of the last trimming
	strays map[objects.OwnerKey]map[objects.Key]struct{}
	users  map[schema.GroupKind]map[objects.OwnerKey]struct{} // who has objects of a kind
	ended  map[objects.Key]objects.Ended                      // Jobs that were seen to have finished
}

// track is how one object is looked at.
type track struct {
	*follower
	desired  *objects.Desired
	template objects.Digest
}

// trimming is what the records of a kind keep for probes.
type trimming struct {
	needs map[objects.OwnerKey]need
	// all is what the needs are together.
	all probes.Needs
	// number grows where all takes in what records lacked so far; see
	// objects.Observed.TrimmedBy.
	number uint32
}

// need is what the probes of one owner read, and the number from which on records
// have it.
type need struct {
	probes.Needs
	since uint32
}

// join makes one of the needs.
func (t *trimming) join() {
	t.all = probes.Needs{}
	for _, n := range t.needs {
		t.all = t.all.Union(n.Needs)
	}
}

// follower is who looks at objects, and what is stamped on them; shared by those that
// were followed one after the other.
type follower struct {
	owner objects.OwnerKey
	stamp objects.Stamp
}

// noFollower is that of objects without a track.
var noFollower = &follower{}

// track returns how an object is looked at.
func (t *Tracker) track(key objects.Key) (tr track, followed bool) {
	if tr, followed = t.tracks[key]; !followed {
		tr.follower = noFollower
	}
	return tr, followed
}

// NewTracker returns an empty tracker. Wake must be set before the first watch
// starts.
func NewTracker() *Tracker {
	return &Tracker{
		shapes: drift.NewListTypes(),
		tracks: map[objects.Key]track{},
		owners: map[types.UID]*objects.OwnerKey{},
		trims:  map[schema.GroupKind]trimming{},
		strays: map[objects.OwnerKey]map[objects.Key]struct{}{},
		users:  map[schema.GroupKind]map[objects.OwnerKey]struct{}{},
		ended:  map[objects.Key]objects.Ended{},
	}
}

// TemplateID names the full template that desired and stamp make.
func TemplateID(d *objects.Desired, labels objects.Digest, owner objects.Owner) objects.Digest {
	return drift.Digest([]any{string(d.Content[:]), string(labels[:]), string(owner.UID)})
}

// Follow makes owner the one that is woken for the object, and desired with
// stamp what its live values are compared with.
func (t *Tracker) Follow(owner objects.OwnerKey, d *objects.Desired, stamp objects.Stamp, template objects.Digest) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if last := t.last; last == nil || last.owner != owner || last.stamp.Revision != stamp.Revision ||
		last.stamp.Owner != stamp.Owner || !maps.Equal(last.stamp.Labels, stamp.Labels) {
		t.last = &follower{owner: owner, stamp: stamp}
	}
	t.tracks[d.Key] = track{follower: t.last, desired: d, template: template}
}

// Unfollow forgets the object if owner follows it.
func (t *Tracker) Unfollow(owner objects.OwnerKey, key objects.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if tr, _ := t.track(key); tr.owner == owner {
		delete(t.tracks, key)
		delete(t.ended, key)
	}
}

// Template returns the object that live values of key are compared with; nil where
// owner does not follow it.
func (t *Tracker) Template(owner objects.OwnerKey, key objects.Key) (map[string]any, error) {
	t.mu.RLock()
	tr, ok := t.track(key)
	t.mu.RUnlock()
	if !ok || tr.owner != owner {
		return nil, nil
	}
	return tr.desired.Object(tr.stamp)
}

// Follows reports whether owner follows the object.
func (t *Tracker) Follows(owner objects.OwnerKey, key objects.Key) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	tr, ok := t.track(key)
	return ok && tr.owner == owner
}

// Own makes key the owner that controller references with one of the UIDs lead
// to: those of the deployment and of its sets.
func (t *Tracker) Own(key objects.OwnerKey, uids ...types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	owner := &key
	for _, uid := range uids {
		if known := t.owners[uid]; known != nil && *known == key {
			owner = known
		}
	}
	for _, uid := range uids {
		t.owners[uid] = owner
	}
}

func (t *Tracker) ownsLocked(key objects.OwnerKey, uid types.UID) bool {
	owner := t.owners[uid]
	return owner != nil && *owner == key
}

// Disown forgets everything about an owner.
func (t *Tracker) Disown(key objects.OwnerKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.strays, key)
	for uid, k := range t.owners {
		if *k == key {
			delete(t.owners, uid)
		}
	}
	t.probeLocked(key, nil)
	t.useLocked(key, nil)
	for k, tr := range t.tracks {
		if tr.owner == key {
			delete(t.tracks, k)
			delete(t.ended, k)
		}
	}
}

// Use declares of which kinds the owner has objects.
func (t *Tracker) Use(owner objects.OwnerKey, kinds []schema.GroupKind) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.useLocked(owner, kinds)
}

func (t *Tracker) useLocked(owner objects.OwnerKey, kinds []schema.GroupKind) {
	for gk, by := range t.users {
		delete(by, owner)
		if len(by) == 0 {
			delete(t.users, gk)
		}
	}
	for _, gk := range kinds {
		if t.users[gk] == nil {
			t.users[gk] = map[objects.OwnerKey]struct{}{}
		}
		t.users[gk][owner] = struct{}{}
	}
}

// KindChanged wakes the owners that have objects of a kind: its API came or
// went, or its watch did.
func (t *Tracker) KindChanged(gk schema.GroupKind) {
	t.mu.RLock()
	owners := slices.Collect(maps.Keys(t.users[gk]))
	t.mu.RUnlock()
	for _, owner := range owners {
		t.Wake(owner)
	}
}

// Probe declares which fields the owner's probes read, by kind. It returns from
// which TrimmedBy on the records of a kind have them; earlier ones have to be listed
// anew.
func (t *Tracker) Probe(owner objects.OwnerKey, needs map[schema.GroupKind]probes.Needs) map[schema.GroupKind]uint32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.probeLocked(owner, needs)
}

func (t *Tracker) probeLocked(owner objects.OwnerKey, needs map[schema.GroupKind]probes.Needs) map[schema.GroupKind]uint32 {
	since := make(map[schema.GroupKind]uint32, len(needs))
	for gk, wanted := range needs {
		trim, kept := t.trims[gk]
		if !kept {
			trim.needs = map[objects.OwnerKey]need{}
		}
		own, known := trim.needs[owner]
		if !known || !own.Covers(wanted) {
			if !kept || !trim.all.Covers(wanted) {
				t.number++
				trim.number = t.number
			}
			own.since = trim.number
		}
		since[gk] = own.since
		if known && own.Covers(wanted) && wanted.Covers(own.Needs) {
			continue
		}
		own.Needs = wanted
		trim.needs[owner] = own
		if known {
			trim.join()
		} else {
			trim.all = trim.all.Union(wanted)
		}
		t.trims[gk] = trim
	}
	for gk, trim := range t.trims {
		_, still := needs[gk]
		if _, known := trim.needs[owner]; still || !known {
			continue
		}
		delete(trim.needs, owner)
		trim.join()
		if t.trims[gk] = trim; len(trim.needs) == 0 {
			delete(t.trims, gk)
		}
	}
	return since
}

// held returns why the deletion of an object hangs.
func held(live *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	return objects.HeldBy(live.GetFinalizers(), conditions)
}

// Observe turns a live object into the record that is kept of it. It is called
// by the watches and for the responses of our own writes alike.
func (t *Tracker) Observe(key objects.Key, live *unstructured.Unstructured) *objects.Observed {
	obs := &objects.Observed{
		UID: live.GetUID(), ResourceVersion: live.GetResourceVersion(), Generation: live.GetGeneration(),
		Owners: slim(live.GetOwnerReferences()),
	}
	controller := obs.Controller()
	t.mu.RLock()
	tr, followed := t.track(key)
	trim, probed := t.trims[key.GroupKind()]
	ours := followed && controller != nil && t.ownsLocked(tr.owner, controller.UID)
	t.mu.RUnlock()

	annotations := live.GetAnnotations()
	obs.Keep = annotations[corev1alpha1.DeletionPolicyAnnotation] == corev1alpha1.DeletionPolicyKeep
	obs.Recreate = annotations[corev1alpha1.OnImmutableAnnotation] == corev1alpha1.OnImmutableRecreate
	obs.Revision, _ = strconv.ParseInt(annotations[corev1alpha1.RevisionAnnotation], 10, 64)
	if live.GetDeletionTimestamp() != nil {
		obs.Terminating = true
		obs.Held = held(live)
	}
	fields := live.GetManagedFields()
	t.shapes.Learn(key.GroupKind(), fields)
	obs.Writer = lastWriter(fields)
	obs.UpdateFields = drift.HasUpdates(fields)
	obs.ApplyFields = drift.HasApply(fields)
	obs.InstallerFields = drift.HasInstaller(fields)
	obs.Wrote = obs.UpdateFields || obs.ApplyFields
	obs.StaleFields = drift.IsStale(fields, t.served(key.GroupKind()))
	obs.Unrecorded = ours && !obs.Wrote
	if followed {
		if template, err := tr.desired.Object(tr.stamp); err == nil {
			shapes := t.shapes.Of(key.GroupKind())
			obs.Projection = drift.Project(template, live.Object, shapes)
			obs.ProjectedBy = tr.template
			obs.Matches = drift.Matches(template, live.Object, shapes)
		}
	}
	if probed {
		obs.Trimmed, obs.TrimmedBy = probes.Trim(live.Object, trim.all), trim.number
	}
	if ours && key.GroupKind() == objects.Job {
		t.noteEnd(key, live, obs, tr.desired.Content)
	}
	return obs
}

// served asks for the versions of one kind, in the way of package drift.
func (t *Tracker) served(gk schema.GroupKind) func(apiVersion string) bool {
	if t.Served == nil {
		return nil
	}
	return func(apiVersion string) bool { return t.Served(gk, apiVersion) }
}

// lastWriter returns the field manager of the latest change of the main
// resource, or "" where it is ours.
func lastWriter(fields []metav1.ManagedFieldsEntry) string {
	var last *metav1.ManagedFieldsEntry
	for i := range fields {
		f := &fields[i]
		if f.Subresource == "" && f.Time != nil && (last == nil || last.Time.Time.Before(f.Time.Time) || f.Manager != corev1alpha1.FieldManager && f.Time.Equal(last.Time)) {
			last = f
		}
	}
	if last == nil || last.Manager == corev1alpha1.FieldManager {
		return ""
	}
	return last.Manager
}

// slim copies owner references without what is not used.
func slim(refs []metav1.OwnerReference) []metav1.OwnerReference {
	for i := range refs {
		refs[i].BlockOwnerDeletion = nil
	}
	return refs
}

// Changed enqueues the owner of an object. An object that is not followed, yet is
// controlled by an owner of ours, is a stray: a write that came late. Former controllers
// among its owner references are enqueued, too, as lone sets that a successor took it
// from.
func (t *Tracker) Changed(key objects.Key, obs *objects.Observed) {
	t.mu.Lock()
	tr, followed := t.track(key)
	owner := tr.owner
	if !followed {
		owner, followed = t.strayLocked(key, obs)
	}
	former := t.formerLocked(owner, obs)
	t.mu.Unlock()
	if followed {
		t.Wake(owner)
	}
	for _, key := range former {
		t.Wake(key)
	}
}

// formerLocked returns the other owners of ours among the owner references of an object.
func (t *Tracker) formerLocked(owner objects.OwnerKey, obs *objects.Observed) (former []objects.OwnerKey) {
	if obs == nil {
		return nil
	}
	for i := range obs.Owners {
		if known := t.owners[obs.Owners[i].UID]; known != nil && *known != owner {
			former = append(former, *known)
		}
	}
	return former
}

func (t *Tracker) strayLocked(key objects.Key, obs *objects.Observed) (objects.OwnerKey, bool) {
	if obs == nil || strings.HasSuffix(key.Group, "package-operator.run") {
		return objects.OwnerKey{}, false
	}
	controller := obs.Controller()
	if controller == nil {
		return objects.OwnerKey{}, false
	}
	known := t.owners[controller.UID]
	if known == nil {
		return objects.OwnerKey{}, false
	}
	owner := *known
	if t.strays[owner] == nil {
		t.strays[owner] = map[objects.Key]struct{}{}
	}
	t.strays[owner][key] = struct{}{}
	return owner, true
}

// Strays returns the strays of an owner in key order.
func (t *Tracker) Strays(owner objects.OwnerKey) []objects.Key {
	t.mu.RLock()
	defer t.mu.RUnlock()
	keys := make([]objects.Key, 0, len(t.strays[owner]))
	for k := range t.strays[owner] {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, objects.Key.Compare)
	return keys
}

// Settle forgets a stray that is dealt with.
func (t *Tracker) Settle(owner objects.OwnerKey, key objects.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.strays[owner], key)
}
