package objectdeployments

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/rollout"
)

// warm loads every owner before the first one is reconciled, so that claims of
// an earlier leader are restored before new ones are asked for, and every watch
// starts with all templates and probes known. Revisions with a durable claim
// come first, then the older ones.
func (r *Reconciler) warm(ctx context.Context) error {
	r.warmMu.Lock()
	defer r.warmMu.Unlock()
	if r.warmed {
		return nil
	}
	if _, err := r.Target.Cluster.Mapping(schema.GroupKind{Kind: "Namespace"}, ""); err != nil {
		return fmt.Errorf("cannot restore the claims: %w", err)
	}
	r.shelf = shelf{}
	defer func() { r.shelf = nil }()
	var sessions []*session
	for _, scope := range []corev1alpha1.Scope{corev1alpha1.ScopeNamespaced, corev1alpha1.ScopeCluster} {
		list := scope.NewObjectSetList()
		if err := r.Client.List(ctx, list.(client.ObjectList)); err != nil {
			return fmt.Errorf("cannot restore the claims: %w", err)
		}
		r.stock(ctx, scope, list.GenericObjectSets())
		seen := map[objects.OwnerKey]bool{}
		for _, set := range list.GenericObjectSets() {
			key := rollout.OwnerOf(set)
			if seen[key] || !rollout.Owns(set) {
				continue
			}
			seen[key] = true
			s, err := r.restore(ctx, key)
			if ctx.Err() != nil {
				return fmt.Errorf("cannot restore the claims: %w", context.Cause(ctx))
			}
			if err != nil && r.patient() {
				return fmt.Errorf("cannot restore the claims of %s: %w", key, err)
			}
			if err != nil {
				// Its own pass reports the error; other owners do not wait.
				log.FromContext(ctx).Error(err, "cannot restore the claims of an owner, goes on without", "owner", key.String())
				r.forgetOwner(key)
				continue
			}
			if s != nil {
				sessions = append(sessions, s)
			}
		}
	}
	for _, claimed := range restoreOrder(sessions) {
		claimed.session.reclaim(claimed.rev)
	}
	for _, s := range sessions {
		s.rollout.Track(r.Target.Tracker, nil, r.Claims)
	}
	r.warmed = true
	return nil
}

// patient reports whether an owner that cannot be loaded is retried before the others
// begin: a transient error should not cost it its claims.
func (r *Reconciler) patient() bool {
	if r.warming.IsZero() {
		r.warming = r.Now()
	}
	return r.Now().Sub(r.warming) < limits.RestoreGrace
}

// restore gathers one owner and loads its sets.
func (r *Reconciler) restore(ctx context.Context, key objects.OwnerKey) (s *session, err error) {
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

type restored struct {
	session *session
	rev     *rollout.Revision
	set     corev1alpha1.GenericObjectSet
}

// rank puts a claim that a status records before one that only the creation of the
// set does: that write may have arrived late, of a leader that was deposed.
func rank(r restored) int {
	if r.rev.ClaimedAtCreation {
		return 1
	}
	return 0
}

// restoreOrder returns the revisions with a durable claim, by age and UID.
func restoreOrder(sessions []*session) []restored {
	var all []restored
	for _, s := range sessions {
		for _, set := range s.sets {
			if rev := s.revisionOf(set); rev != nil && (rev.Claimed() || rev.Opened() > 0) {
				all = append(all, restored{session: s, rev: rev, set: set})
			}
		}
	}
	slices.SortFunc(all, func(a, b restored) int {
		if a.rev.ClaimedAtCreation != b.rev.ClaimedAtCreation {
			return cmp.Compare(rank(a), rank(b))
		}
		at, bt := a.set.GetCreationTimestamp(), b.set.GetCreationTimestamp()
		if c := at.Compare(bt.Time); c != 0 {
			return c
		}
		return strings.Compare(string(a.set.GetUID()), string(b.set.GetUID()))
	})
	return all
}
