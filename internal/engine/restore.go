package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/phases/claims"
)

// Restored is a revision that might have written objects, with its set's record of its claim.
type Restored struct {
	Rollout  *Rollout
	Revision *Revision
	// Lost means that the record shows its claim as lost, Unproven that it shows no started phase.
	Lost, Unproven bool
	// Created is when the set was created.
	Created time.Time
}

// RestoreClaims restores the claims of an earlier process. If several owners have an object on
// record, it reads the holder from the cluster of the engine; with a nil engine it uses the records
// alone. If objects of a kind cannot be read, unread decides whether to continue without knowing
// their controllers.
func RestoreClaims(ctx context.Context, e *Engine, all []Restored, unread func(error) error) error {
	tables := map[*claims.Table][]Restored{}
	for _, r := range all {
		if r.Rollout.Claims != nil { // otherwise no cluster is recorded, so no object was written
			tables[r.Rollout.Claims] = append(tables[r.Rollout.Claims], r)
		}
	}

	for table, restored := range tables {
		records := make([]claims.Record, len(restored))
		for i := range restored {
			records[i] = restored[i].record()
		}
		controllers, err := e.controllers(ctx, restored, claims.Contested(records), unread)
		if err != nil {
			return err
		}
		for i, held := range table.Restore(records, controllers) {
			restored[i].settle(held)
		}
	}

	return nil
}

// RestoreClaim restores the claim of one revision that is loaded later, or again; its owner keeps
// the objects that it holds. The claim is proven if the record shows a started phase.
func (r *Rollout) RestoreClaim(rev *Revision, proven bool) {
	if r.Claims == nil {
		return
	}
	one := Restored{Rollout: r, Revision: rev, Unproven: !proven}
	record := one.record()
	one.settle(r.Claims.Reclaim(&record))
}

// loseOverruled makes revisions lose their claim if a cluster-scoped owner has taken objects of it
// and not given them back. They write nothing more, as after a restoration that finds their objects
// claimed.
func (r *Rollout) loseOverruled() {
	if r.single || !r.Claims.Overruled(r.Owner) {
		return
	}
	for _, rev := range r.Revisions() {
		if rev.Claimed() {
			r.RestoreClaim(rev, false)
		}
	}
}

// record returns the record of the claim, without the objects that successors hold by now.
func (r *Restored) record() claims.Record {
	rollout, rev := r.Rollout, r.Revision
	return claims.Record{
		Owner: rollout.Owner, UID: rev.UID, Created: r.Created, From: rollout.predecessors(), Lost: r.Lost, Unproven: r.Unproven,
		Keys: func() []objects.Key {
			return slices.DeleteFunc(rev.Keys(), func(key objects.Key) bool {
				holder, _ := rollout.Claims.Holder(key)
				return rollout.Controllers.Successors.Has(holder.UID)
			})
		},
	}
}

// settle applies the restoration of the claim. A revision that has lost it does not write any more,
// and is refused in its own step.
func (r *Restored) settle(held bool) {
	rev := r.Revision
	switch {
	case !held:
		rev.LoseClaim()
	case rev.Claimed() && (rev.Refused() || rev.Unauthorized != nil): // the answer that the claim was recorded was lost, and it was refused since
		rev.Refuse()
		rev.forbid(nil, time.Time{})
	}
}

// controllers returns which of the owners control objects, without the objects that cannot be read.
func (e *Engine) controllers(ctx context.Context, all []Restored, keys []objects.Key, unread func(error) error) (claims.Controllers, error) {
	if e == nil || len(keys) == 0 {
		return nil, nil
	}

	steps := map[group][]phases.Step{}
	for _, key := range keys {
		i := slices.IndexFunc(all, func(r Restored) bool { return r.Revision.Contains(key) })
		d, _ := all[i].Revision.Find(key)
		g := group{key.GroupKind(), key.Namespace}
		steps[g] = append(steps[g], phases.Step{Key: key, Desired: d})
	}

	controllers := claims.Controllers{}
	for g, of := range steps {
		live, failed := e.existing(ctx, of)
		if len(failed) > 0 {
			if err := unread(fmt.Errorf("%s in namespace %q: %w", g.kind, g.namespace, failed[0].err)); err != nil {
				return nil, err
			}
			continue
		}
		for _, s := range of {
			controllers[s.Key] = controllerOf(s.Key, live[s.Key], all)
		}
	}

	return controllers, nil
}

// controllerOf returns which of the owners controls an object, the zero Owner if none of them does.
func controllerOf(key objects.Key, live *objects.Observed, all []Restored) (by objects.Owner) {
	if live == nil || live.Controller() == nil {
		return by
	}

	for i := range all {
		if owner := all[i].Rollout; all[i].Revision.Contains(key) && owner.isOurs(*live.Controller()) {
			by = owner.Owner
		}
	}

	return by
}
