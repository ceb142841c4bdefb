package engine

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/cluster"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/engine/tracking"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/phases/drift"
)

// Engine performs the steps of plans against the cluster that objects are rolled out
// to. It is shared by all owners and safe for concurrent use.
type Engine struct {
	Cluster cluster.Cluster
	Tracker *tracking.Tracker
	Pool    Runner
	// Exists reads from the API server whether a ServiceAccount exists, because rights can be bound
	// to one that does not. Without the function all count as existing.
	Exists func(ctx context.Context, account objects.Account) (bool, error)
	// Rights asks as an account for its rights. Without the function these are not proven before a
	// claim.
	Rights func(account objects.Account) Rights
	// Count is called with each event that a process can count; it can be nil.
	Count func(Event)

	lookups lookups
}

// Event is a write that was performed or failed, by its Action; a Fight; or how long a rollout or a
// phase Took.
type Event struct {
	Kind   EventKind
	Action phases.Action
	Failed bool
	Took   time.Duration
}

// EventKind is the kind of an Event.
type EventKind int

// Write is a write to a managed object. Fight is a correction that another writer changes back
// again and again. RolledOut and PhaseReady are from the claim of a revision to its success, and
// from the opening of a phase until its objects were ready.
const (
	Write EventKind = iota
	Fight
	RolledOut
	PhaseReady
)

// Happened passes an event on to Count.
func (e *Engine) Happened(event Event) {
	if e.Count != nil {
		e.Count(event)
	}
}

// step is one running step with its inputs.
type step struct {
	phases.Step
	run     *run
	mapping *meta.RESTMapping
	// live is the whole object in the state of Live, if it was read or written for this step.
	live *unstructured.Unstructured
	// replacement was prepared by the dry run of the phase's entry.
	replacement *replacement
	// asFresh is the answer to the dry run of a creation, without content if it was refused.
	asFresh *unstructured.Unstructured
	// custom means that a CustomResourceDefinition defines the kind.
	custom bool
	// applied means that the object is created by an apply, as the owner requires or because the
	// kind is custom: the API server holds back POSTs for two seconds after a definition was
	// established.
	applied bool
}

// run is one call of perform; mu guards the rollout's memory.
type run struct {
	*Engine
	rollout *Rollout
	mu      sync.Mutex
	// accounts guards the resolved accounts while one is looked up.
	accounts sync.Mutex
	// absent are objects that do not exist, as confirmed by a listing.
	absent map[objects.Key]bool
}

// perform performs steps in parallel, fair between owners, and records their results in the memory
// of the rollout. An error of one step does not stop the others; it is in the object's record. If
// perform returns an error, the caller has to give up: the context ended, or this process does not
// lead.
func (e *Engine) perform(ctx context.Context, r *Rollout, steps []phases.Step, background bool) error {
	run := &run{Engine: e, rollout: r, absent: e.absent(ctx, steps)}
	var failed error
	e.Pool.Run(ctx, r.Owner.OwnerKey, background, len(steps), func(i int) {
		if err := run.do(ctx, steps[i]); err != nil {
			run.mu.Lock()
			failed = err
			run.mu.Unlock()
		}
	})

	if failed == nil {
		failed = ctx.Err()
	}
	return failed
}

func (x *run) do(ctx context.Context, s phases.Step) error {
	defer x.catch(ctx, s)
	version := ""
	if s.Desired != nil {
		version = s.Desired.Version
	}

	mapping, err := x.Cluster.Mapping(s.Key.GroupKind(), version)
	if err != nil {
		x.fail(s, err, false)
		return nil
	}

	custom := x.Cluster.State(s.Key.GroupKind()).Custom
	one := &step{Step: s, run: x, mapping: mapping, custom: custom, applied: custom || x.rollout.single}
	err = one.do(ctx)
	if err == nil {
		one.count(false)
		return nil
	}

	if ctx.Err() != nil || apply.Classify(err) == apply.NotLeading {
		return err
	}

	one.count(true)
	return one.recover(ctx, err)
}

// count counts a step that writes.
func (s *step) count(failed bool) {
	switch s.Action {
	case phases.Create, phases.Change, phases.Adopt, phases.Correct, phases.Relabel, phases.Recreate, phases.Delete, phases.Release, phases.Retain:
		s.run.Happened(Event{Kind: Write, Action: s.Action, Failed: failed})
	}
}

func (s *step) do(ctx context.Context) error {
	switch s.Action {
	case phases.Create, phases.Adopt:
		return s.write(ctx, s.again())
	case phases.Change, phases.Relabel:
		return s.write(ctx, false)
	case phases.Correct:
		return s.write(ctx, true)
	case phases.Verify:
		return s.verify(ctx)
	case phases.Delete, phases.Recreate:
		return s.delete(ctx)
	case phases.Release:
		return s.release(ctx)
	case phases.Retain:
		return s.retain(ctx)
	case phases.Confirm:
		if s.run.absent[s.Key] {
			s.run.mu.Lock()
			defer s.run.mu.Unlock()
			s.forget()
			return nil
		}
		_, err := s.read(ctx)
		return err
	}
	return nil
}

// Guard adds the guards of a server-side apply to the content that is applied over the live object,
// nil if there is none. A former controller stays an owner without control.
func Guard(obj map[string]any, live *objects.Observed, owner objects.Owner) {
	meta := obj["metadata"].(map[string]any)
	if live == nil {
		meta["resourceVersion"] = apply.AbsentVersion
		return
	}

	meta["resourceVersion"], meta["uid"] = live.ResourceVersion, string(live.UID)
	if owner.Remote() {
		owner.Put(meta, live.Owners...)
	}

	if former := live.Controller(); former != nil && !former.Remote && former.UID != owner.UID {
		refs, _ := meta["ownerReferences"].([]any)
		meta["ownerReferences"] = append(refs, map[string]any{
			"apiVersion": former.APIVersion, "kind": former.Kind, "name": former.Name,
			"uid": string(former.UID), "controller": false,
		})
	}
}

// send applies an object that has its guards; it completes the request.
func (s *step) send(ctx context.Context, obj map[string]any, r apply.ApplyRequest) (*unstructured.Unstructured, error) {
	body, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	writes, err := s.writes(ctx)
	if err != nil {
		return nil, err
	}
	r.Mapping, r.Namespace, r.Name, r.Body = s.mapping, s.Key.Namespace, s.Key.Name, body
	return writes.Apply(ctx, r)
}

// contested asks the API server which fields a correction takes back from others. That takes one
// more request, so it is made only if contention is about to be reported; the names of fields can
// be sensitive.
func (s *step) contested(ctx context.Context) []string {
	s.run.mu.Lock()
	asked := s.run.rollout.applied.At(s.Key).Contention.Impends() && s.Live != nil && !s.run.rollout.exposes(s.Key)
	s.run.mu.Unlock()
	if !asked {
		return nil
	}

	obj, err := s.content(ctx)
	if err != nil {
		return nil
	}
	if _, err = s.send(ctx, obj, apply.ApplyRequest{DryRun: true}); apply.Classify(err) != apply.FieldConflict {
		return nil
	}

	return apply.CausesOf(err)
}

// keepIgnored returns an object with the ignored fields as they are on the live one. It reads the
// live object for that, and the guard of the apply is on the same version.
func (s *step) keepIgnored(ctx context.Context, obj map[string]any) (map[string]any, error) {
	if len(s.Desired.Ignored) == 0 || s.Live == nil {
		return obj, nil
	}
	live, err := s.judged(ctx)
	if err != nil {
		return nil, err
	}
	others := drift.OwnedByOthers(s.run.Tracker.Names, obj, live, false)
	kept := s.Desired.Ignored.Keep(obj, live.Object, others)
	kept["metadata"] = maps.Clone(kept["metadata"].(map[string]any)) // the guard is put there
	return kept, nil
}

// judged reads the live object in the version that was judged. A later version can have another
// controller.
func (s *step) judged(ctx context.Context) (*unstructured.Unstructured, error) {
	if s.live != nil && s.live.GetResourceVersion() == s.Live.ResourceVersion {
		return s.live, nil
	}
	live, err := s.run.Cluster.Get(ctx, s.mapping, s.Key.Namespace, s.Key.Name)
	if err == nil && live.GetResourceVersion() != s.Live.ResourceVersion {
		err = apierrors.NewConflict(s.mapping.Resource.GroupResource(), s.Key.Name, errors.New("it has changed since it was judged"))
	}
	if err == nil {
		s.live = live
	}
	return live, err
}

// put creates the object, or changes it if it exists. An absent object of a custom kind is applied,
// guarded by a resourceVersion that never exists, so that the apply can only create.
func (s *step) put(ctx context.Context) (*unstructured.Unstructured, error) {
	if s.Live != nil {
		return s.change(ctx, false)
	}
	obj, err := s.Desired.Object(s.Metadata)
	if err != nil {
		return nil, err
	}
	if s.applied {
		Guard(obj, nil, objects.Owner{})
		return s.send(ctx, obj, apply.ApplyRequest{Force: true})
	}
	return s.create(ctx, s.Key.Name, obj, false)
}

func (s *step) create(ctx context.Context, name string, obj map[string]any, dryRun bool) (*unstructured.Unstructured, error) {
	body, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	writes, err := s.writes(ctx)
	if err != nil {
		return nil, err
	}
	return writes.Create(ctx, s.mapping, s.Key.Namespace, name, body, dryRun)
}

// write writes the object and records the response as the baseline of
// drift.
func (s *step) write(ctx context.Context, correction bool) error {
	s.replacement = s.prepared()
	s.forgetNotes()
	if s.replacement == nil && s.Foreign && s.Live.InstallerFields {
		if err := s.foresee(ctx); err != nil {
			return err
		}
	}

	if err := s.own(ctx); err != nil && !refused(err) {
		return err // admission may deny the object as it is, and admit its new content
	}
	if s.replacement != nil && len(s.replacement.kept) > 0 {
		s.noteKept(s.replacement.kept)
	}

	var fields []string
	if correction {
		fields = s.contested(ctx)
	}

	id, obs, err := s.submit(ctx)
	if err != nil {
		return err
	}

	s.markApplied(id, obs)
	if correction {
		s.countCorrection(fields)
	}
	return nil
}

// submit applies the template, and returns its identity and the resulting object.
func (s *step) submit(ctx context.Context) (objects.Digest, *objects.Observed, error) {
	id := s.track()
	s.markInFlight()
	live, err := s.put(ctx)
	if err != nil {
		return id, s.Live, err
	}
	obs := s.run.Tracker.Observe(s.Key, live)
	s.run.Cluster.Remember(s.Key, obs)
	return id, obs, nil
}

// again reports whether the object had this content before, so that the write restores fields that
// others deleted or took over.
func (s *step) again() bool {
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	return s.run.rollout.applied.At(s.Key).Content == s.Desired.Content
}

// markInFlight forgets that the object was absent, and that it has its former content: a write can
// have taken effect even if its answer gets lost or cannot be handled. Otherwise the values alone
// would not show fields that a former template did not have when they come back.
func (s *step) markInFlight() {
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	rec := s.run.rollout.applied.At(s.Key)
	rec.Gone = false
	if !rec.Content.IsZero() && rec.Content != s.Desired.Content {
		rec.Content = differs
	}
}

// track makes the template the one that the object is compared with from now on, also by events
// that arrive before the response of the write.
func (s *step) track() objects.Digest {
	id := tracking.TemplateID(s.Desired, s.Labels, s.run.rollout.Owner)
	s.run.Tracker.Track(s.run.rollout.Owner.OwnerKey, s.Desired, s.Metadata, id)
	return id
}

// markApplied records that the object shows the template.
func (s *step) markApplied(id objects.Digest, obs *objects.Observed) {
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	rec := s.run.rollout.applied.At(s.Key)
	rec.Content, rec.Labels, rec.Template = s.Desired.Content, s.Labels, id
	rec.Baseline, rec.Converted, rec.UID = obs.Projection, objects.Digest{}, obs.UID
	rec.Gone, rec.Failure = false, nil
	delete(s.run.rollout.unwatchedRecords, s.Key)
	if s.Action == phases.Create && s.Key.GroupKind() == (schema.GroupKind{Kind: "Namespace"}) {
		s.run.rollout.clearFailures(s.Key)
	}
}

// countCorrection records that fields of others were put back.
func (s *step) countCorrection(fields []string) {
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	rec, rival := s.run.rollout.applied.At(s.Key), ""
	if s.Live != nil {
		rival = s.Live.Writer
	}
	rec.CountCorrection(rival, fields, s.run.Cluster.Now())
	if rec.Contention.Throttled() {
		s.run.Happened(Event{Kind: Fight})
	}
}

// setContent records the content of the object.
func (s *step) setContent(content objects.Digest) {
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	rec := s.run.rollout.applied.At(s.Key)
	rec.Content, rec.UID = content, s.Live.UID
}

// read gets the object from the API server and records it. A 404 about its API does not
// mean that the object is absent.
func (s *step) read(ctx context.Context) (*objects.Observed, error) {
	live, err := s.run.Cluster.Get(ctx, s.mapping, s.Key.Namespace, s.Key.Name)
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	if apply.IsAbsent(err) {
		s.forget()
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return s.keep(live), nil
}

// forget records that the object does not exist any more, as confirmed. mu is held.
func (s *step) forget() {
	rec := s.run.rollout.applied.At(s.Key)
	rec.Gone, rec.UID, rec.Failure = true, "", nil
	if s.Key.Admission() {
		s.run.rollout.clearFailures(s.Key)
	}
	delete(s.run.rollout.unwatchedRecords, s.Key)
	if s.Live != nil {
		s.run.Cluster.Gone(s.Key, s.Live.UID)
		s.run.Tracker.Gone(s.Key)
	}
}

// keep remembers the state of the object: with the label of the watch until the watch shows a newer
// one, otherwise until it is read again. mu is held.
func (s *step) keep(live *unstructured.Unstructured) *objects.Observed {
	obs := s.run.Tracker.Observe(s.Key, live)
	if s.run.Tracker.Names.Shown(s.Key.GroupKind(), live.GetLabels()) {
		s.run.Cluster.Remember(s.Key, obs)
		delete(s.run.rollout.unwatchedRecords, s.Key)
	} else {
		s.run.rollout.unwatchedRecords[s.Key] = obs
	}
	rec := s.run.rollout.applied.At(s.Key)
	rec.Gone, rec.ReadAt = false, s.run.Cluster.Now()
	return obs
}
