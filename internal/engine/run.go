package engine

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/engine/tracking"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
)

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

// differs is the content of an object that is known to differ from its template.
var differs = objects.Digest{0xff}

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
	if apply.IsAbsent(err) {
		s.forget()
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return s.keep(live), nil
}

// keep remembers the state of the object: with the label of the watch until the watch shows a newer
// one, otherwise until it is read again.
func (s *step) keep(live *unstructured.Unstructured) *objects.Observed {
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
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

// forget records that the object does not exist any more, as confirmed.
func (s *step) forget() {
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
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

func (s *step) gone() {
	s.run.Cluster.Gone(s.Key, s.Live.UID)
	s.run.Tracker.Gone(s.Key)
	s.run.Tracker.WakeOther(s.run.rollout.Owner.OwnerKey, s.Key)
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	*s.run.rollout.applied.At(s.Key) = phases.Applied{Gone: true}
	delete(s.run.rollout.unwatchedRecords, s.Key)
}
