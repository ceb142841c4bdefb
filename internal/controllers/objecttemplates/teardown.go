package objecttemplates

import (
	"context"
	"fmt"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/objectsets"
)

// tearDown removes the objects that the template controls, and then its finalizer. If the template
// is deleted with its dependents orphaned, it leaves them.
func (s *reconciliation) tearDown(ctx context.Context) error {
	s.Sources.Use(keyOf(s.tmpl), nil)
	rest := objectsets.ForeignFinalizers(s.tmpl)
	if len(rest) == len(s.tmpl.GetFinalizers()) {
		return nil // it was finalized, and others hold it
	}

	if s.written != nil {
		s.former[s.written.Key] = struct{}{}
		s.Target.Drop(s.rollout, s.rollout.Owner.UID)
		s.written = nil
	}

	if keys := s.formerKeys(); len(keys) > 0 {
		removal := engine.Removal(s.rollout.Owner, keys)
		removal.Account, removal.Sensitive = s.rollout.Account, true
		s.rollout.Put(removal)
		gone, err := s.remove(ctx, engine.Want{Teardown: true, Orphan: objectsets.Orphaned(s.tmpl) || s.Fresh.Orphaned(s.tmpl.GetUID())})
		if err != nil {
			return err
		}
		if !gone {
			s.problem = &problem{reason: corev1alpha1.ReasonTearingDown, message: teardownMessage(keys, s.blocking), passes: true}
			return s.report(ctx)
		}
	}

	err := s.Fresh.Change(ctx, s.Client, s.tmpl, func() { s.tmpl.SetFinalizers(rest) })
	if err != nil && !apply.IsAbsent(err) {
		return fmt.Errorf("take the finalizer off: %w", err)
	}
	if len(rest) == 0 {
		s.Fresh.Deleted(s.tmpl.GetUID())
	}

	s.forget(keyOf(s.tmpl))
	return nil
}
