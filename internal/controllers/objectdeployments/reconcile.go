package objectdeployments

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
)

// Reconcile brings one owner a step closer to what its spec says. It is called
// when the owner, one of its sets, or one of their objects changed.
func (r *Reconciler) Reconcile(ctx context.Context, key objects.OwnerKey) (reconcile.Result, error) {
	defer r.queue.Begin()()
	if err := r.restoreClaims(ctx); errors.Is(err, livestate.ErrNotReady) {
		return reconcile.Result{RequeueAfter: startRetry}, nil
	} else if err != nil {
		return reconcile.Result{}, err
	}
	s, err := r.read(ctx, key)
	if err != nil || s == nil {
		return reconcile.Result{}, err
	}
	if s.ref != nil && r.lanes != nil && !s.letsGo() {
		r.lanes.add(ctx, s.secretNamespace()+"/"+s.ref.KubeconfigSecretRef.Name, key)
		return reconcile.Result{}, nil
	}
	return r.reconcile(ctx, key, s)
}

// reconcileRemote reconciles an owner of another cluster.
func (r *Reconciler) reconcileRemote(ctx context.Context, key objects.OwnerKey) (reconcile.Result, error) {
	defer r.queue.Begin()()
	s, err := r.read(ctx, key)
	if err != nil || s == nil {
		return reconcile.Result{}, err
	}
	return r.reconcile(ctx, key, s)
}

// reconcile reconciles what was read.
func (r *Reconciler) reconcile(ctx context.Context, key objects.OwnerKey, s *reconciliation) (reconcile.Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := cancel
	if s.letsGo() {
		stop = func() {} // it waits for no target
	}
	if running, busy := r.busy.LoadOrStore(key, stop); busy { // it waits for a target, or is of this name in another cluster
		if s.letsGo() {
			running.(context.CancelFunc)()
		}
		return reconcile.Result{RequeueAfter: startRetry}, nil
	}
	defer r.busy.Delete(key)
	if err := s.recall(ctx); err != nil {
		return reconcile.Result{}, err
	}
	defer s.rollout.Begin(r.Now, limits.ProbeBudget)()
	ctx = log.IntoContext(ctx, log.FromContext(ctx).WithValues("owner", key.String()))
	err := s.run(ctx)
	if r.Hooks.Planned != nil {
		r.Hooks.Planned(s.rollout)
	}
	if err != nil {
		return s.giveUp(ctx, err)
	}
	s.failures.Note(s.Now(), nil, false)
	return s.result(), nil
}

// run dispatches on what the owner is and whether it goes.
func (s *reconciliation) run(ctx context.Context) error {
	switch {
	case s.deployment == nil && len(s.sets) == 0:
		s.forget()
		return nil
	case s.abandoned():
		return s.finalize(ctx)
	case s.unwritten():
		return s.letUnwrittenGo(ctx)
	case s.away != nil:
		return s.wait(ctx)
	case s.top().GetDeletionTimestamp() != nil:
		return s.teardown(ctx)
	case s.deployment == nil && lifecycle(s.sets[0]) == corev1alpha1.ObjectSetLifecycleStateArchived:
		return s.archiveAlone(ctx)
	}
	if terminating, err := s.ownerTerminating(ctx); err != nil || terminating {
		return err
	}
	if held, err := s.holdPhase(ctx); err != nil || held {
		return err
	}
	if s.moved() {
		return s.reportError(ctx, errMoved, true)
	}
	if err := s.ensureFinalizer(ctx, s.top()); err != nil {
		return err
	}
	if len(s.sets) > 0 { // before the first set is created nothing is written
		if err := s.recordCluster(ctx); err != nil {
			return err
		}
	}
	if err := s.endTakeBacks(ctx); err != nil {
		return err
	}
	return s.roll(ctx)
}

// maxPasses bounds the plans of one reconcile; the rest is left to the next one, after
// other owners.
const maxPasses = 40

// roll rolls the objects out until nothing is left to do or something has to
// happen first.
func (s *reconciliation) roll(ctx context.Context) error {
	for range maxPasses {
		if err := s.load(ctx); err != nil {
			return err
		}
		again, err := s.syncSets(ctx)
		if err != nil {
			return err
		}
		if !again {
			again, err = s.advance(ctx)
		}
		if err != nil {
			return err
		}
		if !again {
			s.limitedReconciles = 0
			if err := s.report(ctx); err != nil {
				return err
			}
			return s.runBackground(ctx)
		}
		if outdated, err := s.outdated(ctx); err != nil || outdated {
			s.requeue(1)
			return err
		}
	}
	s.limitedReconciles++
	s.requeue(min(time.Millisecond<<min(s.limitedReconciles, 20), time.Second))
	return s.report(ctx)
}

// advance takes the next step of the rollout and reports whether there may be
// another one right away.
func (s *reconciliation) advance(ctx context.Context) (bool, error) {
	out, err := s.step(ctx, s.want())
	if err != nil || !out.Idle {
		return out.Again, err
	}
	return s.collectRevisions(ctx)
}

// outdated reports whether the spec of the owner was changed, or the owner deleted, since this reconcile began.
func (s *reconciliation) outdated(ctx context.Context) (bool, error) {
	top, cached := s.top(), client.Object(s.scope.NewObjectSet())
	switch {
	case s.deployment != nil:
		cached = s.scope.NewObjectDeployment()
	case ofPhase(s.key):
		cached = s.scope.NewObjectSetPhase()
	}
	err := s.Client.Get(ctx, client.ObjectKeyFromObject(top), cached, client.UnsafeDisableDeepCopy)
	if err != nil {
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	return cached.GetUID() != top.GetUID() || cached.GetGeneration() > top.GetGeneration() || cached.GetDeletionTimestamp() != nil, nil
}

// giveUp returns when to retry after an error that no status explains.
func (s *reconciliation) giveUp(ctx context.Context, err error) (reconcile.Result, error) {
	if errors.Is(err, errPackageGoes) {
		return reconcile.Result{RequeueAfter: packageRetry}, nil
	}
	switch apply.Classify(err) {
	case apply.NotLeading:
		// The new leader does it; where there is none, this one goes on as soon as it
		// has renewed the Lease.
		return reconcile.Result{RequeueAfter: limits.LeaseRetry}, nil
	case apply.Conflict:
		// The cache is behind a write of another client; its event comes.
		log.FromContext(ctx).V(1).Info("the cache is behind", "error", err.Error())
		return reconcile.Result{RequeueAfter: conflictRetry}, nil
	}
	blocked := apply.IsBlocked(err)
	if s.failures.Note(s.Now(), err, blocked) {
		err = errors.Join(err, s.reportError(ctx, err, blocked))
	}
	return reconcile.Result{}, err
}
