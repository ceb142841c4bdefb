package preview

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"lockstep.run/lockstep/internal/apply"
	"lockstep.run/lockstep/internal/drift"
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
	// reached tells that the engine would get this far.
	reached bool
	// order is that in which objects were removed.
	order []objects.Key

	// mu guards the objects and the memory of the rollout.
	mu      sync.Mutex
	objects map[objects.Key]*object
	// defined are the kinds whose definitions the package brings, namespaces those
	// that it makes.
	defined    map[schema.GroupKind]bool
	namespaces map[string]bool
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
	// foreign is who controlled it before it was taken over; empty for nobody.
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
	if !o.served && !w.defined[key.GroupKind()] {
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
	if wanted == o.observed.Projection || s.Report {
		w.settle(s, o.now, false)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.rollout.Memory.At(s.Key).Baseline = wanted // where it differs, that is left so
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	rec := w.rollout.Memory.At(s.Key)
	rec.Content, rec.UID = objects.Digest{0xff}, o.observed.UID // known to differ
	return nil
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

// settle makes after what the object shows; written tells that a write made it so.
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
		o.done, o.reached, o.version = append(o.done, s.Action), o.reached && w.reached, s.Desired.Version
	}
	o.now, o.observed = after, obs
	rec := w.rollout.Memory.At(s.Key)
	rec.Content, rec.Labels, rec.Template = s.Desired.Content, s.Labels, id
	rec.Baseline, rec.UID, rec.Gone, rec.Failure = obs.Projection, obs.UID, false, nil
	w.learn(s.Key, after)
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

// learn notes the kinds that a definition brings, and namespaces. mu is held.
func (w *world) learn(key objects.Key, obj *unstructured.Unstructured) {
	switch key.GroupKind() {
	case crdKind:
		group, _, _ := unstructured.NestedString(obj.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(obj.Object, "spec", "names", "kind")
		w.defined[schema.GroupKind{Group: group, Kind: kind}] = true
	case schema.GroupKind{Kind: "Namespace"}:
		w.namespaces[key.Name] = true
	}
}

var crdKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// remove foresees a removal.
func (w *world) remove(s phases.Step) {
	o := w.object(s.Key)
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.Action != phases.Confirm {
		o.done, o.reached = append(o.done, s.Action), o.reached && w.reached
		w.order = append(w.order, s.Key)
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
		Message:   w.cause(err), Preflight: preflight,
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

// cause is an error without the request that it is of: a plan names the object.
func (w *world) cause(err error) string {
	var request *apply.Error
	if errors.As(err, &request) {
		for _, rev := range w.rollout.Revisions() {
			if rev.Sensitive {
				return apply.Brief(err) // what is refused may repeat sensitive values
			}
		}
		err = request.Err
	}
	return strings.TrimSpace(err.Error())
}

// Refused is a refusal that no request was needed for.
type Refused struct{ Message string }

// Error is the message.
func (r *Refused) Error() string { return r.Message }

// foresee returns what a write makes of an object.
func (w *world) foresee(ctx context.Context, s phases.Step) (*unstructured.Unstructured, error) {
	o := w.object(s.Key)
	template, err := s.Desired.Object(s.Stamp)
	if err != nil {
		return nil, err
	}
	id := rollout.TemplateID(s.Desired, s.Labels, w.rollout.Owner)
	w.mu.Lock()
	var known *unstructured.Unstructured
	if s.Action != phases.Verify {
		known = o.dry[id]
	}
	why, err := w.blind(s, o)
	w.mu.Unlock()
	switch {
	case err != nil:
		return nil, err
	case known != nil:
		return known, nil
	case why != "":
		return w.guess(o, template, why), nil
	}
	after, err := w.dryRun(ctx, s, o, template)
	if err != nil {
		if why, is := unverifiable(err); is {
			return w.guess(o, template, why), nil
		}
		return nil, err
	}
	if s.Action == phases.Verify {
		return after, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if o.dry == nil {
		o.dry = map[objects.Digest]*unstructured.Unstructured{}
	}
	o.dry[id] = after
	return after, nil
}

// blind says why no dry run of a step is possible; empty where one is. mu is held.
func (w *world) blind(s phases.Step, o *object) (string, error) {
	gk := s.Key.GroupKind()
	switch {
	case o.mapping == nil && w.defined[gk]:
		return "its CustomResourceDefinition comes with the package", nil
	case o.mapping == nil:
		return "", &Refused{fmt.Sprintf("the API server does not serve %s in version %s: bring the object in a version that is served", gk, s.Desired.Version)}
	case s.Live == nil && s.Key.Namespace != "" && w.namespaces[s.Key.Namespace] && w.objects[namespaceKey(s.Key.Namespace)].live == nil:
		return "its namespace comes with the package", nil
	case s.Live != nil && o.live == nil:
		return "it is made by the package itself", nil
	case s.Live == nil && o.live != nil && len(o.done) > 0:
		return "it is deleted first", nil
	case s.Live != nil && s.Live.StaleFields:
		return "its managedFields name a version that is not served any more; the engine puts that right first", nil
	}
	return "", nil
}

func namespaceKey(name string) objects.Key { return objects.Key{Kind: "Namespace", Name: name} }

// dryRun asks the API server. The guards are those of the object as it is.
func (w *world) dryRun(ctx context.Context, s phases.Step, o *object, template map[string]any) (*unstructured.Unstructured, error) {
	var live *objects.Observed
	if s.Live != nil {
		live = w.observe(s.Key, o.live)
	}
	rollout.Guard(template, live, s.Stamp.Owner)
	body, err := json.Marshal(template)
	if err != nil {
		return nil, err
	}
	request := apply.ApplyRequest{
		Mapping: o.mapping, Namespace: s.Key.Namespace, Name: s.Key.Name, Body: body, Force: true, DryRun: true,
	}
	if live == nil {
		request.FieldValidation = "Strict" // as that of the POST that makes it
	}
	dry, err := w.Writer.Apply(ctx, request)
	if err != nil || live == nil || s.Action == phases.Correct || s.Action == phases.Verify {
		return dry, err
	}
	return w.withoutLeaving(ctx, s, o, dry)
}

// withoutLeaving takes off what the engine's own earlier writes put on the object
// and the template has no more (engine.md 2).
func (w *world) withoutLeaving(ctx context.Context, s phases.Step, o *object, dry *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	var templates []map[string]any
	for _, rev := range w.rollout.Revisions() {
		d, _ := rev.Find(s.Key)
		if d == nil {
			continue
		}
		template, err := d.Object(rev.Stamp)
		if err != nil {
			return nil, err
		}
		templates = append(templates, template)
	}
	after, removed, err := drift.Leaving(dry, templates, nil)
	if err != nil || !removed {
		return dry, err
	}
	// The API server fills in its defaults where a value is gone.
	body := after.DeepCopy()
	body.SetManagedFields(nil)
	raw, err := json.Marshal(body.Object)
	if err != nil {
		return nil, err
	}
	filled, err := w.Writer.DryUpdate(ctx, o.mapping, s.Key.Namespace, s.Key.Name, raw)
	if _, is := unverifiable(err); is {
		return after, nil
	}
	return filled, err
}

// guess lays the template over the live values, for want of a dry run.
func (w *world) guess(o *object, template map[string]any, why string) *unstructured.Unstructured {
	w.mu.Lock()
	o.unverified = why
	now, live := o.now, o.live
	w.mu.Unlock()
	switch {
	case now == nil && live == nil:
		after := &unstructured.Unstructured{Object: template}
		after.SetUID(uuid.NewUUID())
		return after
	case now == nil:
		// Made anew: the defaults will be those that it has.
		after := live.DeepCopy()
		overlay(after.Object, template)
		after.SetUID(uuid.NewUUID())
		after.SetManagedFields(nil)
		after.SetDeletionTimestamp(nil)
		return after
	}
	after := now.DeepCopy()
	overlay(after.Object, template)
	return after
}

// overlay merges from into onto: maps key by key, elements of lists by their names
// where they have some, anything else as a whole.
func overlay(onto, from map[string]any) {
	for key, v := range from {
		switch v := v.(type) {
		case map[string]any:
			if below, both := onto[key].(map[string]any); both {
				overlay(below, v)
				continue
			}
		case []any:
			if below, both := onto[key].([]any); both {
				onto[key] = overlayList(below, v)
				continue
			}
		}
		onto[key] = v
	}
}

func overlayList(onto, from []any) []any {
	merged := make([]any, len(from))
	for i, element := range from {
		merged[i] = element
		fields, isMap := element.(map[string]any)
		at := slices.IndexFunc(onto, func(other any) bool {
			o, ok := other.(map[string]any)
			return ok && isMap && o["name"] != nil && o["name"] == fields["name"]
		})
		if at >= 0 {
			below := runtime.DeepCopyJSON(onto[at].(map[string]any))
			overlay(below, fields)
			merged[i] = below
		}
	}
	return merged
}

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
	var uid types.UID = uuid.NewUUID()
	if o.now != nil {
		uid = o.now.GetUID()
	}
	after.SetUID(uid)
	after.Object["metadata"].(map[string]any)["ownerReferences"] = template["metadata"].(map[string]any)["ownerReferences"]
	after.SetDeletionTimestamp(nil)
	w.settle(phases.Step{Key: d.Key, Desired: d, Stamp: rev.Stamp, Labels: rev.Labels}, after, false)
	return nil
}
