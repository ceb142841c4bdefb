package dryrun

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/controllers/objectdeployments"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/phases/claims"
)

// simulation runs the controller of deployments in a simulated cluster, from the claim of the new
// revision to the end of its cleanup, and removes all obstacles.
type simulation struct {
	*simulatedCluster
	in         *input
	reconciler *objectdeployments.Reconciler
	at         *engine.Engine

	// rollout and plan are the last reconcile's.
	rollout *engine.Rollout
	plan    *phases.Plan

	// installed are the existing revisions, and next is the template's.
	installed []*engine.Revision
	next      *engine.Revision

	refusals []Refusal
}

// revisions returns the installed revisions, and the new one if there is one.
func (s *simulation) revisions() []*engine.Revision {
	all := slices.Clone(s.installed)
	if s.in.fresh {
		all = append(all, s.next)
	}
	return all
}

// loaded assumes that all probes succeed, and records a rejection of the new revision.
func (s *simulation) loaded(rev *engine.Revision) {
	rev.AssumeReady()
	if rev.Number != s.in.number || s.in.deletes {
		return
	}
	rev.Sensitive = rev.Sensitive || s.in.Sensitive != nil
	// Every load of the revision reports the same rejection, which must not be repeated.
	known := slices.ContainsFunc(s.refusals, func(r Refusal) bool { return r.Phase == "" && r.Message == rev.Blocked() })
	if rev.Blocked() != "" && !known {
		s.refusePackage(objects.Key{}, rev.Blocked())
	}
	// The simulation continues without the rejection, to show the rest of the rollout.
	rev.Block("")
}

// run reconciles the deployment until it is complete or deleted.
func (s *simulation) run(ctx context.Context) error {
	// A rollout that needs more reconciles is considered endless.
	rounds := 100 + 10*len(s.objects)
	// The controller's log would mix messages about simulated writes into the output.
	ctx = logr.NewContext(ctx, logr.Discard())
	for range rounds {
		done, err := s.round(ctx)
		if err != nil || done {
			return err
		}
	}
	return fmt.Errorf("the rollout does not end within %d steps: please report this as a bug", rounds)
}

// round reconciles once and removes the obstacles. Then it moves the simulated clock forward
// instead of waiting.
func (s *simulation) round(ctx context.Context) (done bool, err error) {
	s.plan = nil
	result, err := s.reconciler.Reconcile(ctx, s.in.key)
	if err = cmp.Or(s.failed, err); err != nil || s.plan == nil { // it was deleted before a plan
		return err == nil, err
	}

	unblocked, err := s.unblock(ctx)
	switch {
	case err != nil:
		return false, err
	case unblocked:
		s.now = s.now.Add(max(result.RequeueAfter, unblockedWait))
		return false, nil
	case result.RequeueAfter == 0, s.complete():
		return true, nil
	}

	s.now = s.now.Add(result.RequeueAfter)
	return false, nil
}

// unblockedWait is longer than any backoff of the engine.
const unblockedWait = 10 * time.Minute

// current returns the revision of the template in the last reconcile, or nil if the controller has
// not created it.
func (s *simulation) current() *engine.Revision {
	all := s.rollout.Revisions()
	if len(all) == 0 || all[len(all)-1].Number != s.in.number {
		return nil
	}
	return all[len(all)-1]
}

// complete reports whether the new revision has succeeded and no step, entry or gate remains.
func (s *simulation) complete() bool {
	next := s.current()
	return next != nil && next.Succeeded() && len(s.plan.Steps) == 0 && s.plan.Entry == nil && s.plan.Gate == nil
}

// unblock records and removes the obstacles of the rollout, and reports whether there were any.
func (s *simulation) unblock(ctx context.Context) (bool, error) {
	if next := s.current(); next != nil && next.Refused() {
		return true, s.claim(ctx, next)
	}

	unblocked := false
	revisions := s.rollout.Revisions()
	for i := range min(len(revisions), len(s.plan.Reports)) {
		for _, b := range s.plan.Reports[i].Blocking {
			unblocked = true
			if err := s.unblockOne(revisions[i], b); err != nil {
				return false, err
			}
		}
	}

	return unblocked, nil
}

// claim records and removes the obstacles to the claim of a revision.
func (s *simulation) claim(ctx context.Context, rev *engine.Revision) error {
	blocked := rev.Refusals
	var conflicts []phases.Blocker
	for _, d := range rev.AllObjects() {
		if holder, held := s.reconciler.ClaimsOf(s.in.ID, s.in.key.Namespace).Holder(d.Key); held && holder.UID != s.in.uid &&
			(d.Collision != objects.CollisionProtectionNone || !claims.Overrules(s.rollout.Owner, holder)) {
			conflict := &claims.Conflict{Key: d.Key, Holder: holder, Claimant: s.rollout.Owner}
			conflicts = append(conflicts, phases.Blocker{Key: d.Key, Message: s.rollout.Reason(ctx, conflict)})
			// The claim of the holder is released only afterwards, so that each conflict is
			// found.
			defer s.reconciler.ClaimsOf(s.in.ID, s.in.key.Namespace).Release(holder)
		}
	}

	// A conflict with another owner explains more than the refusal that follows from it.
	if len(conflicts) > 0 {
		blocked = conflicts
	}

	for _, b := range blocked {
		s.refusePackage(b.Key, b.Message)
		s.object(b.Key).refusal = &Refusal{Message: b.Message}
		if d, _ := rev.Find(b.Key); d != nil {
			if err := s.pretend(rev, d); err != nil {
				return err
			}
		}
	}

	rev.Refuse()
	return nil
}

// unblockOne removes one obstacle: it skips the wait for a terminating object, and records any
// other obstacle as a refusal.
func (s *simulation) unblockOne(rev *engine.Revision, b phases.Blocker) error {
	o := s.object(b.Key)
	d, _ := rev.Find(b.Key)
	// A terminating object only delays the rollout, so it is not a refusal.
	terminating := b.Kind == phases.BlockWait && o.now != nil && o.now.GetDeletionTimestamp() != nil
	if !terminating {
		s.stop(b)
		if d != nil && !rev.Removing() && !s.in.deletes {
			return s.pretend(rev, d)
		}
	}

	if terminating {
		o.unverified = "it is being deleted; the engine waits until it is removed"
	}
	o.now, o.observed = nil, nil
	s.at.Assume(s.rollout, rev, b.Key, nil)

	return nil
}

// pretend makes an object equal to its template, as if nothing blocked the write.
func (s *simulation) pretend(rev *engine.Revision, d *objects.Desired) error {
	o := s.object(d.Key)
	template, err := d.Object(rev.Metadata)
	if err != nil {
		return err
	}
	after := s.guess(o, template, o.unverified)
	if o.now != nil {
		after.SetUID(o.now.GetUID())
	}

	owned, of := after.Object["metadata"].(map[string]any), template["metadata"].(map[string]any)
	if owned["ownerReferences"] = of["ownerReferences"]; of["ownerReferences"] == nil {
		delete(owned, "ownerReferences")
	}
	after.SetDeletionTimestamp(nil)
	after.SetManagedFields([]metav1.ManagedFieldsEntry{{ // otherwise any client could have written an owner in another cluster
		Manager: corev1alpha1.FieldManager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: after.GetAPIVersion(),
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1("{}"),
	}})

	obs := s.at.Assume(s.rollout, rev, d.Key, after)
	o.now, s.pretended[d.Key.GroupKind()] = after, d
	s.Remember(d.Key, obs)

	return nil
}

// stop records a refusal. From then on, the engine would not have reached any object.
func (s *simulation) stop(b phases.Blocker) {
	o := s.object(b.Key)
	r := Refusal{Phase: b.Phase, ID: objectdiff.IDOf(b.Key), Fields: o.immutable, Message: b.Message}
	o.refusal = &r
	s.reached, o.reached = false, false
	s.refusals = append(s.refusals, r)
}

// refusePackage records a refusal of the package as a whole. key is empty if it is not about an
// object.
func (s *simulation) refusePackage(key objects.Key, message string) {
	s.reached = false
	s.refusals = append(s.refusals, Refusal{ID: objectdiff.IDOf(key), Message: message})
}
