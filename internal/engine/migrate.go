package engine

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/phases/drift"
)

// migration is the patch of one state of an object's managedFields.
type migration struct {
	resourceVersion string
	patch           []byte
}

// migrates reports whether managedFields have to be rewritten before an apply, so that it
// removes fields that left the template or that it never had, or succeeds at all.
// Correcting drift removes nothing, unless the content is to change, too.
func (s *step) migrates() bool {
	if s.Live == nil {
		return false
	}
	another := s.Action == phases.Change || s.Action == phases.Adopt || s.Action == phases.Correct && !s.again()
	return s.Live.StaleFields || s.Live.UpdateFields && another || s.Foreign && s.Live.InstallerFields
}

// migrate turns entries in managedFields into an Apply entry of ours. The dry run of the
// phase's entry has mostly prepared that.
func (s *step) migrate(ctx context.Context) error {
	patch, err := s.migration(ctx)
	if err != nil || patch == nil {
		return err
	}
	writes, err := s.writes(ctx)
	if err != nil {
		return err
	}
	live, err := writes.Patch(ctx, s.mapping, s.Key.Namespace, s.Key.Name, patch)
	if err != nil {
		return err
	}
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	s.Live = s.keep(live)
	return nil
}

func (s *step) migration(ctx context.Context) ([]byte, error) {
	s.run.mu.Lock()
	prepared, ok := s.run.rollout.migrations[s.Key]
	delete(s.run.rollout.migrations, s.Key)
	s.run.mu.Unlock()
	if ok && prepared.resourceVersion == s.Live.ResourceVersion {
		return prepared.patch, nil
	}
	live, err := s.judged(ctx)
	if err != nil {
		return nil, err
	}
	patch, _, err := s.patchFor(live)
	return patch, err
}

// prepare keeps the migration that follows from the answer to a dry run. Where the
// object has an Apply entry of ours as well, by a correction of drift, the answer
// does not show any more which fields leave it: the object itself is read then.
func (s *step) prepare(dry *unstructured.Unstructured) error {
	if !s.migrates() || s.Live.ApplyFields {
		return nil
	}
	patch, needed, err := s.patchFor(dry)
	if err != nil || !needed {
		return err
	}
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	s.run.rollout.migrations[s.Key] = migration{resourceVersion: s.Live.ResourceVersion, patch: patch}
	return nil
}

func (s *step) patchFor(live *unstructured.Unstructured) ([]byte, bool, error) {
	from, err := s.origin(live)
	if err != nil {
		return nil, false, err
	}
	return drift.Migration(s.run.Tracker.names, live, from)
}

// origin limits our entries to the templates that may have written the object.
func (s *step) origin(live *unstructured.Unstructured) (drift.Origin, error) {
	from := drift.Origin{Served: s.run.Tracker.served(s.Key.GroupKind())}
	next, err := s.Desired.Object(s.Metadata)
	if err != nil {
		return from, err
	}
	if s.Foreign {
		from.Adopting = next
	}
	from.Templates = append(from.Templates, next)
	known := false
	for _, rev := range s.run.rollout.Revisions() {
		if rev.History {
			continue // its content is not known
		}
		d, phase := rev.Find(s.Key)
		known = known || d != nil && d != s.Desired && phase < rev.Opened()
		if d == nil || d.Content == s.Desired.Content {
			continue
		}
		template, err := d.Object(rev.Metadata)
		if err != nil {
			return from, err
		}
		from.Templates = append(from.Templates, template)
	}
	if !known {
		from.Templates = append(from.Templates, dataOf(live))
	}
	return from, nil
}

// dataOf is all that a ConfigMap or Secret holds, as a template. It stands for that
// of a revision that is gone: it was archived or deleted before its successor
// wrote the object, or the object was left behind by a deployment. Of other kinds
// what such a revision contained cannot be told from defaults.
func dataOf(live *unstructured.Unstructured) map[string]any {
	template := map[string]any{}
	if kind := live.GetKind(); live.GetAPIVersion() != "v1" || kind != "ConfigMap" && kind != "Secret" {
		return template
	}
	for _, field := range []string{"data", "binaryData"} {
		if value, ok := live.Object[field]; ok {
			template[field] = value
		}
	}
	return template
}
