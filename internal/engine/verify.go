package engine

import (
	"context"

	"lockstep.run/lockstep/internal/engine/tracking"
	"lockstep.run/lockstep/internal/objects"
)

// verify finds out whether the object matches the template if this process has not written it: by
// its values, or else by one dry run.
func (s *step) verify(ctx context.Context) error {
	id := tracking.TemplateID(s.Desired, s.Labels, s.run.rollout.Owner)
	if s.Live.ProjectedBy != id {
		watched := s.Live
		s.track()
		obs, err := s.read(ctx)
		if err != nil || obs == nil {
			return err
		}
		s.Live = obs
		defer s.converted(watched)
		if watched.ProjectedBy.IsZero() && s.compared(id) {
			return nil
		}
	}

	switch {
	case s.Live.Exceeds:
		s.setContent(differs)
		return nil
	case s.Live.Matches:
		s.markApplied(id, s.Live)
		return nil
	case s.Live.StaleFields:
		s.setContent(differs) // not even a dry run is possible
		return nil
	}

	s.Metadata.Owner = tracking.KeptOwner(s.Metadata.Owner, s.Live.Controller())
	dry, err := s.change(ctx, true)
	if err != nil {
		return err
	}

	wanted := s.run.Tracker.Observe(s.Key, dry)
	if wanted.Projection == s.Live.Projection {
		s.markApplied(id, s.Live)
		return nil
	}

	if s.Report {
		s.markApplied(id, wanted) // what differs from it is named, and left
		return nil
	}

	s.setContent(differs)
	return nil
}

// compared reports whether this process has written or verified this template on the object. For a
// watch in another version, its values then decide. Otherwise the template was replaced since: by a
// write of other labels, whose answer was lost, and which is not another manager's change.
func (s *step) compared(id objects.Digest) bool {
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	rec := s.run.rollout.applied.At(s.Key)
	return rec.Content == s.Desired.Content && rec.Template == id && rec.UID == s.Live.UID
}

// converted remembers how the watch shows the object in another version than the template's, if it
// was found to show the template.
func (s *step) converted(watched *objects.Observed) {
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	rec := s.run.rollout.applied.At(s.Key)
	same := watched.UID == rec.UID && watched.ResourceVersion == s.Live.ResourceVersion && watched.ProjectedBy.IsZero()
	if same && rec.Content == s.Desired.Content && rec.Template == s.Live.ProjectedBy && rec.Baseline == s.Live.Projection {
		rec.Converted = watched.Projection
	}
}
