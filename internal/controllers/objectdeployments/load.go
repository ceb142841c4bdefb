package objectdeployments

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/kube/quota"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objectsets"
)

// load brings the loaded revisions in line with the sets: every set that might own objects is
// loaded once, and its mutable state is read at each pass.
func (s *reconciliation) load(ctx context.Context) error {
	if err := s.loadSets(ctx); err != nil {
		return err
	}
	for _, set := range s.sets {
		if s.deployment == nil || !objectsets.Orphaning(set) && !s.Fresh.Orphaned(set.GetUID()) {
			continue
		}
		if err := s.markOrphaned(ctx, set); err != nil {
			return err
		}
	}
	return nil
}

// loadSets makes the revisions of the rollout match the sets: it drops the ones that disappeared,
// and loads new and changed ones.
func (s *reconciliation) loadSets(ctx context.Context) error {
	wanted := slices.DeleteFunc(slices.Clone(s.sets), func(set corev1alpha1.GenericObjectSet) bool { return !s.loads(set) })
	defer s.countMemory()
	for _, rev := range s.rollout.Revisions() {
		if !slices.ContainsFunc(wanted, func(set corev1alpha1.GenericObjectSet) bool { return set.GetUID() == rev.UID }) {
			// A set that was torn down and then disappeared is complete: an object that came back
			// since is a stray.
			drop := s.Target.Drop
			if rev.Removing() && !rev.Releasing() {
				drop = s.Target.DropTornDown
			}
			drop(s.rollout, rev.UID)
			delete(s.records, rev.UID)
			s.forgetSlices()
			s.rollout.Claims.Retain(s.rollout.Owner, s.rollout.Keys())
		}
	}

	for _, set := range wanted {
		if err := s.loadOne(ctx, set); err != nil {
			return err
		}
	}

	s.leaveStateful()
	return nil
}

// loadOne loads a set that is not loaded yet, or has changed, and else brings its revision in line.
func (s *reconciliation) loadOne(ctx context.Context, set corev1alpha1.GenericObjectSet) error {
	if !objectsets.Owns(set) {
		s.loadRetained(set)
		return nil
	}

	rev := s.rollout.Loaded(set.GetUID())
	renewed := rev != nil && (rev.History || rev.Number > 0 && rev.Number != s.numberOf(set))
	// A kind that was unknown when the revision was loaded can be served now, with its scope.
	served := func(key objects.Key) bool { return s.Target.Cluster.State(key.GroupKind()).Served }
	if rev != nil && !renewed && !slices.ContainsFunc(rev.Unscoped, served) && !s.restorable(rev) {
		s.refresh(rev, set, false)
		return nil
	}

	loaded, err := s.loadSet(ctx, set)
	if err != nil {
		return err
	}

	if rev != nil && !renewed {
		loaded.CarryOver(rev)
		if s.restored && (rev.Claimed() || rev.ClaimLost()) {
			s.restoreClaim(loaded, set) // it can have other objects now
		}
	}

	s.rollout.Put(loaded)
	s.refresh(loaded, set, rev == nil)
	return nil
}

// numberOf returns the number of a set: the one in its status until a set with a higher one starts
// over.
func (s *reconciliation) numberOf(set corev1alpha1.GenericObjectSet) int64 {
	if s.deployment != nil && objectsets.Renumbered(set) {
		return set.ObjectSetStatus().Revision
	}
	return set.ObjectSetSpec().Revision
}

// loadSet loads a set, and first reads its parts that are stored elsewhere.
func (s *reconciliation) loadSet(ctx context.Context, set corev1alpha1.GenericObjectSet) (*engine.Revision, error) {
	s.takeWritten()
	missing, err := s.readSlices(ctx, set)
	if err != nil {
		return nil, err
	}

	secrets, err := s.readSecrets(ctx, set)
	if err != nil {
		return nil, err
	}

	rev := objectsets.Load(set, s.stored, s.rollout.Owner, s.namespaced)
	rev.Number = s.numberOf(set)
	rev.Metadata.Revision = rev.Number
	if s.ref == nil {
		rev.Account = objectsets.AccountOf(&set.ObjectSetSpec().ObjectSetTemplateSpec, s.key.Namespace, s.Namespace)
	}
	if err := s.rejectReserved(ctx, rev); err != nil {
		return nil, err
	}

	if missing = append(missing, secrets...); len(missing) > 0 {
		rev.MarkIncomplete(fmt.Sprintf("slices %s are missing: a Package makes them again, unless it is paused; else restore them, or change the template", named(missing)))
		s.of(rev.UID).missingReadAt = s.Now()
		s.Requeue(missingRetry)
	}

	if s.Hooks.Loaded != nil {
		s.Hooks.Loaded(rev)
	}
	return rev, nil
}

// named lists missing slices; the search ends at limits.SlicesMissing.
func named(missing []string) string {
	text := fmt.Sprintf("%q", missing)
	if len(missing) >= limits.SlicesMissing {
		text += " and maybe more"
	}
	return text
}

// countMemory counts the memory of the loaded revisions.
func (s *reconciliation) countMemory() {
	var loaded []types.UID
	for _, rev := range s.rollout.Revisions() {
		loaded = append(loaded, rev.UID)
	}

	if slices.Equal(loaded, s.counted) {
		return
	}

	s.counted = loaded
	var size int64
	for _, rev := range s.rollout.Revisions() {
		for _, d := range rev.Objects() {
			size += quota.AtRest(d.Raw)
		}
	}

	s.quota.Count(memoryKey(s.key), size)
}

// missingRetry is the time after which missing slices are looked for again, because slices are not
// watched.
const missingRetry = 5 * time.Second

// restorable reports whether a revision lacks slices that might exist again by now.
func (s *reconciliation) restorable(rev *engine.Revision) bool {
	return rev.Incomplete() && !s.Wait(s.of(rev.UID).missingReadAt.Add(missingRetry).Sub(s.Now()))
}

// refresh copies the mutable fields of a set into its revision; fresh means that this process sees
// the set for the first time.
func (s *reconciliation) refresh(rev *engine.Revision, set corev1alpha1.GenericObjectSet, fresh bool) {
	// A new session loads a set again whose claim was restored at the start. A phase has the
	// annotations of its set.
	if fresh && s.phase == nil && (!s.restored || s.rollout.Holds(rev)) {
		rev.ClaimedAtCreation = objectsets.ClaimedAtCreation(set)
	}
	claimed := rev.Claimed() || rev.ClaimLost()
	objectsets.Restore(rev, set, fresh)
	if s.restored && !claimed && rev.Claimed() {
		// A durable claim of an earlier process: loading failed when claims were restored, or it
		// was recorded after that.
		s.restoreClaim(rev, set)
	}
	if s.deployment != nil && s.deployment.ObjectDeploymentSpec().Paused {
		rev.Pause(true)
	}
}
