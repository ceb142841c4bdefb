package dryrun

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"

	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/rollout"
)

// World is the cluster as it would be after the steps so far.
type world struct {
	*Cluster
	tracker *rollout.Tracker
	rollout *rollout.Rollout
	now     time.Time
	// reached means that the engine would get this far.
	reached bool
	// defined are the kinds that the package defines.
	defined *definitions

	// mu guards the objects and the memory of the rollout.
	mu      sync.Mutex
	objects map[objects.Key]*object
}

// object is one object of the world.
type object struct {
	sight
	// now is what it would be; nil where it would not exist.
	now *unstructured.Unstructured
	// observed is the record of now.
	observed *objects.Observed
	// done are the steps that changed something, in their order.
	done []phases.Action
	// version of the template that was written last.
	version string
	// unverified says why no dry run was possible.
	unverified string
	// refusal is why the engine would not write it; immutable are the fields that the
	// API server did not let it change.
	refusal   *Refusal
	immutable []string
	// reached is that of the world at the last step.
	reached bool
	// foreign is who controlled it before it was taken over; empty for none.
	foreign string
	// dry are answers to dry runs by the digest of what was sent.
	dry map[objects.Digest]*unstructured.Unstructured
}

// look is what the pure core sees of an object. Kinds that the package defines
// count as served from the moment on at which their definition is there.
func (w *world) look(key objects.Key) phases.Sight {
	w.mu.Lock()
	defer w.mu.Unlock()
	o := w.objects[key]
	if o == nil {
		return phases.Sight{Synced: true}
	}
	if !o.served && !w.defined.brings(key.GroupKind()) {
		return phases.Sight{Unserved: true}
	}
	return phases.Sight{Synced: true, Object: o.observed}
}

// perform does what the executor does with a step.
func (w *world) perform(ctx context.Context, s phases.Step) error {
	switch s.Action {
	case phases.Create, phases.Change, phases.Adopt, phases.Correct, phases.Relabel:
		return w.write(ctx, s)
	case phases.Verify:
		return w.verify(ctx, s)
	case phases.Delete, phases.Recreate, phases.Release, phases.Confirm:
		w.remove(s)
	}
	return nil
}

func (w *world) object(key objects.Key) *object {
	w.mu.Lock()
	defer w.mu.Unlock()
	o := w.objects[key]
	if o == nil {
		o = &object{reached: true}
		w.objects[key] = o
	}
	return o
}

// write foresees a write; where the API server refuses it, that is in the memory
// of the rollout.
func (w *world) write(ctx context.Context, s phases.Step) error {
	after, err := w.foresee(ctx, s)
	if err != nil {
		return w.fail(ctx, s, err, false)
	}
	w.settle(s, after, true)
	return nil
}

// verify finds out whether an object shows its template.
func (w *world) verify(ctx context.Context, s phases.Step) error {
	id := w.follow(s)
	o := w.object(s.Key)
	w.mu.Lock()
	o.observed = w.observe(s.Key, o.now)
	matches := o.observed.Matches && o.observed.ProjectedBy == id
	w.mu.Unlock()
	if matches {
		w.settle(s, o.now, false)
		return nil
	}
	after, err := w.foresee(ctx, s)
	if err != nil {
		return w.fail(ctx, s, err, false)
	}
	wanted := w.observe(s.Key, after).Projection
	if wanted == o.observed.Projection || s.Report || w.wrote(s.Desired) {
		w.settle(s, o.now, false)
		w.mu.Lock()
		defer w.mu.Unlock()
		// What differs from what was written last is drift: corrected, or left so.
		w.rollout.Memory.At(s.Key).Baseline = wanted
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	rec := w.rollout.Memory.At(s.Key)
	rec.Content, rec.UID = objects.Digest{0xff}, o.observed.UID // known to differ
	return nil
}

// wrote reports whether a revision that is installed has written an object with this
// content: a manager that runs remembers that.
func (w *world) wrote(d *objects.Desired) bool {
	for _, rev := range w.rollout.Revisions() {
		if old, ph := rev.Find(d.Key); old != nil && rev.UID != newUID && ph < rev.Begun() && old.Content == d.Content {
			return true
		}
	}
	return false
}

// observe makes the record of an object as the watches of the engine would.
func (w *world) observe(key objects.Key, live *unstructured.Unstructured) *objects.Observed {
	if live == nil {
		return nil
	}
	obs := w.tracker.Observe(key, live)
	obs.Watched, obs.Trimmed = true, nil
	return obs
}

func (w *world) follow(s phases.Step) objects.Digest {
	id := rollout.TemplateID(s.Desired, s.Labels, w.rollout.Owner)
	w.tracker.Follow(w.rollout.Key, s.Desired, s.Stamp, id)
	return id
}

// settle makes after what the object shows; written means that a write made it so.
func (w *world) settle(s phases.Step, after *unstructured.Unstructured, written bool) {
	id := w.follow(s)
	obs := w.observe(s.Key, after)
	obs.Unrecorded = obs.Unrecorded && !written && len(after.GetManagedFields()) > 0 // what is only foreseen has no record
	o := w.object(s.Key)
	w.mu.Lock()
	defer w.mu.Unlock()
	if written {
		if s.Action == phases.Adopt && o.now != nil {
			o.foreign = w.formerOwner(o)
		}
		if s.Action != phases.Relabel || len(o.done) == 0 {
			o.reached = o.reached && w.reached // labels alone come last, and count least
		}
		o.done, o.version = append(o.done, s.Action), s.Desired.Version
	}
	o.now, o.observed = after, obs
	rec := w.rollout.Memory.At(s.Key)
	rec.Content, rec.Labels, rec.Template = s.Desired.Content, s.Labels, id
	rec.Baseline, rec.UID, rec.Gone, rec.Failure = obs.Projection, obs.UID, false, nil
	if s.Key.GroupKind() == crdKind {
		w.defined.learn(s.Key, o.live, after)
	}
}

// formerOwner names who an adopted object is taken from; empty where it is one of
// our own revisions.
func (w *world) formerOwner(o *object) string {
	if ref := o.observed.Controller(); ref != nil {
		if _, ours := w.rollout.Siblings[ref.UID]; ours || w.rollout.Owner.Namesake(ref) {
			return ""
		}
		return ref.Kind + " " + ref.Name
	}
	return "nobody"
}

// bringsNamespace reports whether a namespace is made by the package: it is not there
// yet, or is being deleted.
func (w *world) bringsNamespace(name string) bool {
	o := w.objects[objects.Key{Kind: "Namespace", Name: name}]
	return o != nil && o.now != nil && (o.live == nil || o.live.GetUID() != o.now.GetUID())
}

// remove foresees a removal.
func (w *world) remove(s phases.Step) {
	o := w.object(s.Key)
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.Action != phases.Confirm {
		o.done, o.reached = append(o.done, s.Action), o.reached && w.reached
	}
	o.now, o.observed = nil, nil
	*w.rollout.Memory.At(s.Key) = phases.Record{Gone: true}
}

// fail notes that a step is refused. An error that is about the connection, not
// about the object, ends the preview.
func (w *world) fail(ctx context.Context, s phases.Step, err error, preflight bool) error {
	var refused *Refused
	var status apierrors.APIStatus
	class := apply.Classify(err)
	if ctx.Err() != nil || class == apply.Conflict || class == apply.Replaced || !errors.As(err, &refused) && !errors.As(err, &status) {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	f := &phases.Failure{
		Immutable: len(apply.ImmutableFields(err)) > 0,
		Message:   w.cause(s.Key, err), Preflight: preflight,
		Attempts: 1, Until: w.now.Add(24 * time.Hour),
	}
	if s.Live != nil {
		f.UID = s.Live.UID
	}
	if s.Desired != nil {
		f.Content = s.Desired.Content
	}
	w.rollout.Memory.At(s.Key).Failure = f
	if o := w.objects[s.Key]; o != nil {
		o.immutable = apply.ImmutableFields(err)
	}
	return nil
}

// cause is an error without the request that it is of: a plan names the object. It
// quotes no value of a Secret.
func (w *world) cause(key objects.Key, err error) string {
	var request *apply.Error
	if errors.As(err, &request) {
		if key.GroupKind() == secretKind {
			return apply.Brief(err) + " (what else the API server says is left out, because it may repeat a value)"
		}
		if reduced, sensitive := w.rollout.Reduced(key, err); sensitive {
			return reduced
		}
		err = request.Err
	}
	return strings.TrimSpace(err.Error())
}

var secretKind = schema.GroupKind{Kind: "Secret"}

// Refused is a refusal that no request was needed for.
type Refused struct{ Message string }

// Error is the message.
func (r *Refused) Error() string { return r.Message }

// pretend makes an object what its template says, as if what stands in the way
// had been mended.
func (w *world) pretend(rev *rollout.Revision, d *objects.Desired) error {
	o := w.object(d.Key)
	template, err := d.Object(rev.Stamp)
	if err != nil {
		return err
	}
	why := o.unverified
	after := w.guess(o, template, why)
	uid := uuid.NewUUID()
	if o.now != nil {
		uid = o.now.GetUID()
	}
	after.SetUID(uid)
	after.Object["metadata"].(map[string]any)["ownerReferences"] = template["metadata"].(map[string]any)["ownerReferences"]
	after.SetDeletionTimestamp(nil)
	w.settle(phases.Step{Key: d.Key, Desired: d, Stamp: rev.Stamp, Labels: rev.Labels}, after, false)
	w.mu.Lock()
	o.served = true // so that it is waited for once
	w.mu.Unlock()
	return nil
}
