package packages

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/kube/statuswriter"
	"lockstep.run/lockstep/internal/limits"
)

// report writes the status where it changed: at once where a condition changed
// its value, else at most once in limits.PackageStatusInterval.
func (s *session) report(ctx context.Context, o outcome) error {
	s.schedule(o)
	was, is := s.pkg.PackageStatus().DeepCopy(), statusOf(s.view, o)
	if equality.Semantic.DeepEqual(was, is) {
		s.finish(o)
		return nil
	}
	if wait := s.hold(was, is, o); wait > 0 {
		s.requeue(wait)
		return nil
	}
	*s.pkg.PackageStatus() = *is
	if err := statuswriter.Write(ctx, s.Client, s.pkg); err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	s.fresh.Put(s.pkg)
	s.reports.wrote(s.pkg.GetUID(), s.now)
	s.announce(was, is, o)
	s.finish(o)
	return nil
}

// schedule asks for another pass when a failed load is due again.
func (s *session) schedule(o outcome) {
	if o.step == stepWait && s.attempt.done && !s.attempt.retry.IsZero() {
		s.requeue(s.attempt.retry.Sub(s.now))
	}
}

// hold returns how long a changed status is to be kept back. What begins is not
// reported for a moment, since most of it is over by then: a load, a rollout, a
// teardown. Nor are changes of what is only a number or a text.
func (s *session) hold(was, is *corev1alpha1.PackageStatus, o outcome) time.Duration {
	since := func(begun time.Time) time.Duration { return limits.PackageStatusInterval - s.now.Sub(begun) }
	begins := func(begun time.Time) time.Duration { return beginning(s.attempts.inFlight()) - s.now.Sub(begun) }
	ended := conditions.IsTrueFor(is.Conditions, corev1alpha1.ConditionReady, s.pkg.GetGeneration()) ||
		conditions.IsTrueFor(is.Conditions, corev1alpha1.ConditionStalled, s.pkg.GetGeneration())
	switch deleted := s.pkg.GetDeletionTimestamp(); {
	case ended:
	case deleted != nil && since(deleted.Time) > 0:
		return since(deleted.Time)
	case deleted == nil && loading(s.view, o) && begins(s.attempt.started) > 0:
		return begins(s.attempt.started)
	case deleted == nil && o.step == stepDeploy && o.writeErr == nil && begins(s.attempt.deployed) > 0:
		return begins(s.attempt.deployed)
	}
	if urgent(was, is) {
		return 0
	}
	return since(s.reports.last(s.pkg.GetUID()))
}

// beginning is for how long it is not reported that a rollout has begun, where so
// many packages are being loaded and rolled out.
func beginning(packages int) time.Duration {
	return min(max(limits.PackageStatusInterval, time.Duration(packages)*limits.PackageStatusShare), limits.PackageStatusMax)
}

// urgent reports whether a status says something that is waited for.
func urgent(was, is *corev1alpha1.PackageStatus) bool {
	return unpackedAnew(was, is) || !equality.Semantic.DeepEqual(values(was.Conditions), values(is.Conditions))
}

func values(conds []metav1.Condition) map[string]metav1.ConditionStatus {
	m := make(map[string]metav1.ConditionStatus, len(conds))
	for _, c := range conds {
		m[c.Type] = c.Status
	}
	return m
}

// finish forgets a load once the status records it.
func (s *session) finish(o outcome) {
	if o.step != stepDeploy || o.writeErr != nil {
		return
	}
	s.metrics.loaded(s.pkg.GetUID(), s.attempt.took)
	s.attempts.drop(s.pkg.GetUID())
}

// reports remembers when the status of each Package was last written. The zero
// value is ready for use.
type reports struct {
	mu    sync.Mutex
	times map[types.UID]time.Time
}

func (r *reports) wrote(uid types.UID, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.times == nil {
		r.times = map[types.UID]time.Time{}
	}
	r.times[uid] = at
}

func (r *reports) last(uid types.UID) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.times[uid]
}

func (r *reports) forget(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.times, uid)
}
