package engine

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/phases/drift"
)

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

// migrates reports whether managedFields have to be rewritten before an apply, so that it removes
// fields that left the template or were never in it, or succeeds at all. A correction of drift does
// not remove fields, unless the content also changes.
func (s *step) migrates() bool {
	if s.Live == nil {
		return false
	}
	another := s.Action == phases.Change || s.Action == phases.Adopt || s.Action == phases.Correct && !s.again()
	return s.Live.StaleFields || (s.Live.UpdateFields || s.Live.OwnsReplicas && !s.statesReplicas()) && another || s.Foreign && s.Live.InstallerFields
}

func (s *step) statesReplicas() bool {
	obj, err := s.Desired.Object(s.Metadata)
	if err != nil {
		return false
	}
	_, stated, _ := unstructured.NestedFieldNoCopy(obj, "spec", "replicas")
	return stated
}

// migrate turns entries in managedFields into an Apply entry of ours. It comes before the dry run
// of a change: fields that leave the template would stay in an Update entry, and the API server
// would judge the old and the new ones together.
func (s *step) migrate(ctx context.Context) error {
	live, err := s.judged(ctx)
	if err != nil {
		return err
	}

	from, err := s.origin(live)
	if err != nil {
		return err
	}

	patch, needed, err := drift.Migration(s.run.Tracker.Names, live, from)
	if err != nil || !needed {
		return err
	}
	if live, err = s.patch(ctx, patch, false); err != nil {
		return err
	}

	s.live, s.Live = live, s.keep(live)
	return nil
}

// origin limits our entries to the templates that might have written the object.
func (s *step) origin(live *unstructured.Unstructured) (drift.Origin, error) {
	from := drift.Origin{Served: s.run.Tracker.ServedVersions(s.Key.GroupKind())}
	next, err := s.Desired.Object(s.Metadata)
	if err != nil {
		return from, err
	}

	from.Next, from.Adopting = next, s.Foreign
	if s.replacement != nil {
		from.Kept = s.replacement.kept
	}

	from.Templates = append(s.formerTemplates(), next)
	if !s.formerIsKnown() {
		from.Templates = append(from.Templates, dataOf(live))
	}
	return from, nil
}

// formerIsKnown reports whether a revision is loaded that might have written the object before.
func (s *step) formerIsKnown() bool {
	for _, rev := range s.run.rollout.Revisions() {
		if rev.History {
			continue
		}
		if d, phase := rev.Find(s.Key); d != nil && d != s.Desired && phase < rev.Opened() {
			return true
		}
	}

	return false
}

// dataOf returns the whole data of a ConfigMap or Secret, as a template. It replaces the template
// of a revision that no longer exists: it was archived or deleted before its successor wrote the
// object, or a deployment left the object behind. For other kinds, the content of such a revision
// cannot be distinguished from defaults.
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
