package objectdeployments

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objectsets"
)

const restoreGrace = 5 * time.Second // during which claims of an unreadable owner are retried at the start

// RestoreClaims loads every owner, once, before the first one is reconciled or another one claims
// objects, so that claims of an earlier leader are restored before new ones are made, and every
// watch starts with all templates and probes known. Its error is livestate.ErrNotReady at the
// start.
func (r *Reconciler) RestoreClaims(ctx context.Context) error {
	r.restoreMu.Lock()
	defer r.restoreMu.Unlock()
	if r.restored {
		return nil
	}

	if r.Here.Cluster != nil { // an agent has nothing here
		if _, err := r.Here.Cluster.Mapping(schema.GroupKind{Kind: "Namespace"}, ""); err != nil {
			return fmt.Errorf("cannot restore the claims: %w", err)
		}
	}

	r.prefetched = map[types.NamespacedName]corev1alpha1.GenericObjectSlice{}
	defer func() { r.prefetched = nil }()
	var reconciliations []*reconciliation
	for _, scope := range corev1alpha1.Scopes() {
		keys, err := r.claimants(ctx, scope)
		if err != nil {
			return fmt.Errorf("cannot restore the claims: %w", err)
		}
		seen := map[objects.OwnerKey]bool{}
		for _, key := range keys {
			if seen[key] {
				continue
			}
			seen[key] = true
			s, err := r.restore(ctx, key)
			if ctx.Err() != nil {
				return fmt.Errorf("cannot restore the claims: %w", context.Cause(ctx))
			}
			if err != nil && r.mayRetryRestore() {
				return fmt.Errorf("cannot restore the claims of %s: %w", key, err)
			}
			if err != nil {
				// Its own pass reports the error; other owners do not wait.
				log.FromContext(ctx).Error(err, "cannot restore the claims of an owner, continuing without them", "owner", key.String())
				r.forget(key)
				continue
			}
			if s != nil {
				reconciliations = append(reconciliations, s)
			}
		}
	}

	if err := r.restoreClaims(ctx, reconciliations); err != nil {
		return fmt.Errorf("cannot restore the claims: %w", err)
	}

	var here []*engine.Rollout
	for _, s := range reconciliations {
		if s.ref == nil {
			here = append(here, s.rollout)
		}
	}

	r.Here.Prepare(here...)
	r.restored = true
	return nil
}

// awaitLists ends the first reconcile of a restored owner while its objects are being listed,
// because most of it would be repeated after that. The end of each list enqueues the owner. A
// deployment that was changed since its last status does not wait.
func (s *reconciliation) awaitLists(context.Context) error {
	changed := s.deployment != nil && s.deployment.GetGeneration() != s.deployment.ObjectDeploymentStatus().ObservedGeneration
	if !s.listed && !changed && s.Target.Pending(s.rollout) {
		return queueing.ErrEnd
	}
	s.listed = true
	return nil
}

// claimants returns the owners of a scope that might have claimed objects, and prefetches their
// slices.
func (r *Reconciler) claimants(ctx context.Context, scope corev1alpha1.Scope) ([]objects.OwnerKey, error) {
	var keys []objects.OwnerKey
	if r.Here.Cluster != nil { // an agent has nothing here
		list := scope.NewObjectSetList()
		if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, err
		}
		r.prefetchSlices(ctx, scope, list.GenericObjectSets())
		for _, set := range list.GenericObjectSets() {
			if objectsets.Owns(set) {
				keys = append(keys, objectsets.OwnerOf(set))
			}
		}
	}

	if r.Phases == nil {
		return keys, nil
	}

	more, err := r.Phases.Keys(ctx, scope)
	return append(keys, more...), err
}

// prefetchSlices lists the slices of the sets if there are more than a few.
func (r *Reconciler) prefetchSlices(ctx context.Context, scope corev1alpha1.Scope, sets []corev1alpha1.GenericObjectSet) {
	wanted := map[types.NamespacedName]struct{}{}
	for _, set := range sets {
		for _, name := range objectsets.SlicesOf(set) {
			if objectsets.Owns(set) {
				wanted[types.NamespacedName{Namespace: set.GetNamespace(), Name: name}] = struct{}{}
			}
		}
	}

	for token, more := "", len(wanted) > limits.SlicesAsked; more; more = token != "" {
		page := scope.NewObjectSliceList()
		if err := r.Reader.List(ctx, page, client.Limit(limits.SlicePage), client.Continue(token)); err != nil {
			log.FromContext(ctx).V(1).Info("slices are read one by one", "error", err.Error())
			return
		}
		for _, slice := range page.GenericObjectSlices() {
			key := client.ObjectKeyFromObject(slice)
			if _, ok := wanted[key]; ok {
				r.prefetched[key] = slice
			}
		}
		token = page.GetContinue()
	}
}

// mayRetryRestore reports whether an owner that cannot be loaded is retried before the others
// start: a transient error should not cost it its claims.
func (r *Reconciler) mayRetryRestore() bool {
	if r.restoreSince.IsZero() {
		r.restoreSince = r.Now()
	}
	return r.Now().Sub(r.restoreSince) < restoreGrace
}

// restore gathers one owner and loads its sets.
func (r *Reconciler) restore(ctx context.Context, key objects.OwnerKey) (s *reconciliation, err error) {
	defer func() {
		if p := recover(); p != nil {
			s, err = nil, panics.Recovered(log.FromContext(ctx), p, "loading "+key.String())
		}
	}()
	if s, err = r.gather(ctx, key); s == nil || err != nil {
		return nil, err
	}
	return s, s.loadSets(ctx)
}

// restoreClaims restores the claims of revisions that might have written objects. Claims to objects
// in other clusters are restored from the record alone, because these clusters might not answer.
func (r *Reconciler) restoreClaims(ctx context.Context, reconciliations []*reconciliation) error {
	var here, elsewhere []engine.Restored
	for _, s := range reconciliations {
		for _, set := range s.sets {
			rev := s.revisionOf(set)
			if rev == nil || !rev.Claimed() && rev.Opened() == 0 {
				continue
			}
			lost, proven := objectsets.ClaimOf(set)
			one := engine.Restored{Rollout: s.rollout, Revision: rev, Lost: lost, Unproven: !proven, Created: set.GetCreationTimestamp().Time}
			if s.ref == nil {
				here = append(here, one)
			} else {
				elsewhere = append(elsewhere, one)
			}
		}
	}

	unread := func(err error) error {
		if ctx.Err() != nil || r.mayRetryRestore() {
			return err
		}
		log.FromContext(ctx).Error(err, "cannot read which owners control the objects of a kind; continuing without")
		return nil
	}

	if err := engine.RestoreClaims(ctx, r.Here.Engine, here, unread); err != nil {
		return err
	}
	return engine.RestoreClaims(ctx, nil, elsewhere, unread)
}

// restoreClaim restores the claim of one revision.
func (s *reconciliation) restoreClaim(rev *engine.Revision, set corev1alpha1.GenericObjectSet) {
	_, proven := objectsets.ClaimOf(set)
	s.rollout.RestoreClaim(rev, proven && rev.Claimed())
}
