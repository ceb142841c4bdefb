package engine

import (
	"context"

	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/engine/tracking"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases/drift"
)

// differs is the content of an object that is known to differ from its template.
var differs = objects.Digest{0xff}

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
		if s.compared(id) {
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

// compared reports whether this process has written or verified this template on the object: then
// its values decide.
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

// own makes managedFields list our fields of the object if they do not: a POST or an earlier engine
// wrote them differently, or they were wiped.
func (s *step) own(ctx context.Context) error {
	switch {
	case s.Live == nil:
		return nil
	case s.migrates():
		return s.migrate(ctx)
	case s.Live.Unrecorded:
		return s.record(ctx)
	}
	return nil
}

// record puts the Apply entry back that the template left which wrote the object
// last, as a dry run shows it.
func (s *step) record(ctx context.Context) error {
	former, err := s.run.Tracker.Template(s.run.rollout.Owner.OwnerKey, s.Key)
	if err != nil || former == nil {
		return err
	}
	if former, err = s.keepIgnored(ctx, former); err != nil {
		return err
	}

	Guard(former, s.Live, s.Desired.Owner(s.Metadata.Owner))
	dry, err := s.send(ctx, former, apply.ApplyRequest{Force: true, DryRun: true})
	if err != nil {
		return err
	}

	patch, err := drift.Record(dry, s.Live.ResourceVersion)
	if err != nil {
		return err
	}

	live, err := s.patch(ctx, patch, false)
	if err != nil {
		return err
	}

	s.live, s.Live = live, s.run.Tracker.Observe(s.Key, live)
	return nil
}
