package objecttemplates

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/phases/claims"
)

const objectTemplateStart = 20 * time.Millisecond // before an API is looked up again at the start

// maxPasses bounds the steps of one reconcile: an object takes a look, a write, and another write
// after a lost race.
const maxPasses = 10

// act writes the object, and removes formerly rendered ones.
func (s *reconciliation) act(ctx context.Context) error {
	if s.desired == nil {
		return nil
	}

	if err := s.RestoreClaims(ctx); errors.Is(err, livestate.ErrNotReady) {
		s.Requeue(objectTemplateStart)
		s.unknown = true
		return nil
	} else if err != nil {
		return err
	}

	s.put()
	if !s.claim() {
		return nil
	}

	report, err := s.roll(ctx)
	if err != nil {
		return err
	}

	s.blocking, s.unknown = report.Blocking, report.Unknown
	s.applied = report.Complete() && !report.InTransition()
	s.awaitRival(report.Blocking)
	if s.live, _ = s.Target.Cluster.Observed(s.desired.Key); s.applied {
		return s.removeFormer(ctx)
	}

	s.leaving = s.formerKeys()
	if collides(report.Blocking) {
		s.retainClaims(s.leaving...) // it must not keep others away from an object that it cannot have
	}
	return nil
}

// put puts the rendered object into the rollout.
func (s *reconciliation) put() {
	if s.written == s.desired {
		return
	}

	if s.written != nil && s.written.Key != s.desired.Key {
		s.former[s.written.Key] = struct{}{}
		s.Target.Drop(s.rollout, s.rollout.Owner.UID)
	}

	written := s.written == nil && controlled(s.tmpl) == s.desired.Key
	if before := s.rollout.Loaded(s.rollout.Owner.UID); before != nil {
		written = before.Phases[0].WrittenBefore()
	}

	rev := engine.Single(s.rollout.Owner, s.desired, written)
	rev.Account, rev.Sensitive, rev.ReadsStatus = s.rollout.Account, s.last.secret, hasStatus(s.desired.Key.GroupKind())
	s.rollout.Put(rev)
	s.written = s.desired
}

// hasStatus reports whether objects of a kind can report conditions.
func hasStatus(gk schema.GroupKind) bool {
	return gk != schema.GroupKind{Kind: "ConfigMap"} && gk != schema.GroupKind{Kind: "Secret"}
}

// controlled returns the object that a status names; empty if there is none.
func controlled(tmpl corev1alpha1.GenericObjectTemplate) objects.Key {
	ref := tmpl.ObjectTemplateStatus().ControllerOf
	if ref == nil {
		return objects.Key{}
	}
	return objects.Key{Group: ref.Group, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
}

// claim claims the object before a package or another template does. Its release enqueues the
// owners that were refused.
func (s *reconciliation) claim() bool {
	key := s.desired.Key
	err := s.Claims.Claim(s.rollout.Owner, []objects.Key{key})
	var conflict *claims.Conflict
	if !errors.As(err, &conflict) {
		return true
	}
	s.leaving = s.formerKeys()
	s.blocking = []phases.Blocker{{
		Key: key, Kind: phases.BlockCollision, Message: fmt.Sprintf("belongs to %s: render another name, or leave it out there", conflict.Holder),
	}}
	return false
}

// roll takes steps until none is left, and returns the state of the object.
func (s *reconciliation) roll(ctx context.Context) (*phases.Report, error) {
	if _, err := s.steps(ctx, engine.Want{}); err != nil {
		return nil, err
	}
	plan := s.rollout.Plan()
	report := &plan.Reports[len(plan.Reports)-1]
	if !plan.Retry.IsZero() && !collides(report.Blocking) {
		s.Requeue(plan.Retry.Sub(s.Now()))
	}
	return report, nil
}

// steps takes steps until none is left, or until no object to remove exists any more.
func (s *reconciliation) steps(ctx context.Context, want engine.Want) (out engine.Outcome, err error) {
	want.References = marks{s}
	for range maxPasses {
		out, err = s.Target.Step(ctx, s.rollout, want)
		if err != nil || !out.Again {
			break
		}
	}
	return out, err
}

// marks are on the template, under its resourceVersion, while a reference to it is put on an object
// that lacks it: that is refused once the template is being deleted. Deleted with the mark, it
// releases the object; without, an orphaning deletion has found the reference.
type marks struct{ s *reconciliation }

// Take puts the mark on.
func (m marks) Take(ctx context.Context, _ []types.UID) error {
	return m.s.mark(ctx, corev1alpha1.OrphanedTakingBack)
}

// Release takes the mark off.
func (m marks) Release(ctx context.Context, _ []types.UID) error { return m.s.endTakeBack(ctx) }

// endTakeBack takes the mark off, even if an earlier process set it.
func (s *reconciliation) endTakeBack(ctx context.Context) error {
	if s.tmpl.GetAnnotations()[corev1alpha1.OrphanedAnnotation] != corev1alpha1.OrphanedTakingBack {
		return nil
	}
	return s.mark(ctx, "")
}

// mark sets the annotation of an orphaned object that is taken back; an empty value removes it.
func (s *reconciliation) mark(ctx context.Context, value string) error {
	err := s.Fresh.Change(ctx, s.Client, s.tmpl, func() { objectsets.Annotate(s.tmpl, corev1alpha1.OrphanedAnnotation, value) })
	if err != nil {
		return fmt.Errorf("take the object back: %w", err)
	}
	return nil
}

// collides reports whether another owner's object is in the way.
func collides(blocking []phases.Blocker) bool {
	return slices.ContainsFunc(blocking, func(b phases.Blocker) bool { return b.Kind == phases.BlockCollision })
}

// awaitRival watches an object that has another owner, because the watch of managed objects might
// not show it. Each change of the object ends the pause before it is read again.
func (s *reconciliation) awaitRival(blocking []phases.Blocker) {
	rival := sources.Ref{}
	if key := s.desired.Key; collides(blocking) {
		rival = sources.Ref{Group: key.Group, Version: s.desired.Version, Kind: key.Kind, Namespace: key.Namespace, Name: key.Name}
	}
	if s.rival != rival {
		s.rival, s.rivalVersion = rival, nil
		s.watch()
	}
}

// formerKeys returns the objects that were rendered before, by the memory, by the status,
// and by their owner references.
func (s *reconciliation) formerKeys() []objects.Key {
	if key := controlled(s.tmpl); key != (objects.Key{}) {
		s.former[key] = struct{}{}
	}
	if s.desired != nil {
		delete(s.former, s.desired.Key)
		s.Target.Tracker.ForgetStray(s.rollout.Owner.OwnerKey, s.desired.Key)
	}
	keys := sets.KeySet(s.former).Insert(s.Target.Strays(s.rollout)...)
	return slices.SortedFunc(maps.Keys(keys), objects.Key.Compare)
}

// removeFormer removes the previously rendered objects once the present one exists.
func (s *reconciliation) removeFormer(ctx context.Context) error {
	former := s.formerKeys()
	gone := len(former) == 0
	if !gone {
		removal := engine.Removal(s.rollout.Owner, former)
		removal.Account, removal.Sensitive = s.rollout.Account, s.last.secret
		s.rollout.Put(removal)
		var err error
		if gone, err = s.remove(ctx, engine.Want{}); err != nil {
			return err
		}
	}

	if gone {
		s.forgetFormer(former)
		s.retainClaims(s.desired.Key)
		return nil
	}

	var left []objects.Key
	for _, key := range former {
		live, known := s.Target.Cluster.Observed(key)
		if !known && s.rollout.Gone(key) {
			delete(s.former, key)
			s.Target.Tracker.ForgetStray(s.rollout.Owner.OwnerKey, key)
			continue
		}
		left = append(left, key)
		if !known || !live.Terminating {
			s.leaving = append(s.leaving, key)
		}
	}

	s.retainClaims(append(left, s.desired.Key)...)
	return nil
}

// retainClaims releases the claims of other objects.
func (s *reconciliation) retainClaims(keys ...objects.Key) {
	kept := map[objects.Key]struct{}{}
	for _, key := range keys {
		kept[key] = struct{}{}
	}
	s.Claims.Retain(s.rollout.Owner, kept)
}

// remove performs the removal of the rollout, and reports whether all objects are removed.
func (s *reconciliation) remove(ctx context.Context, want engine.Want) (gone bool, err error) {
	out, err := s.steps(ctx, want)
	if err != nil || out.TornDown {
		return out.TornDown, err
	}
	plan := s.rollout.Plan()
	if !plan.Retry.IsZero() {
		s.Requeue(plan.Retry.Sub(s.Now()))
	}
	s.blocking = append(s.blocking, plan.Reports[0].Blocking...)
	return false, nil
}

// forgetFormer forgets objects that no longer exist.
func (s *reconciliation) forgetFormer(keys []objects.Key) {
	s.Target.Drop(s.rollout, engine.RemovalOf(s.rollout.Owner))
	for _, key := range keys {
		delete(s.former, key)
		s.Target.Tracker.ForgetStray(s.rollout.Owner.OwnerKey, key)
	}
}
