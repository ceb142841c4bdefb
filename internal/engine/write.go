package engine

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/objects"
)

// write writes the object and records the response as the baseline of
// drift.
func (s *step) write(ctx context.Context, correction bool) error {
	s.replacement = s.prepared()
	if s.replacement == nil && s.Foreign && s.Live.InstallerFields {
		if err := s.foresee(ctx); err != nil {
			return err
		}
	}

	if err := s.own(ctx); err != nil && !refused(err) {
		return err // admission can deny the present object and admit its new content
	}
	if s.replacement != nil && len(s.replacement.kept) > 0 {
		s.note("%s cannot change, so values that its former manager set and the template leaves out stay", strings.Join(s.replacement.kept, ", "))
	}

	var fields []string
	if correction {
		fields = s.contested(ctx)
	}

	id := s.track()
	s.markInFlight()
	live, err := s.put(ctx)
	if err != nil {
		return err
	}

	obs := s.run.Tracker.Observe(s.Key, live)
	s.run.Cluster.Remember(s.Key, obs)
	s.markApplied(id, obs)
	if correction {
		s.countCorrection(fields)
	}
	return nil
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
