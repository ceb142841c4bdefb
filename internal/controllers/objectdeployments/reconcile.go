package objectdeployments

import (
	"cmp"
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/controllers/objectdeployments/lanes"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/kube/leadership"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objectsets"
)

const deploymentStart = 5 * time.Millisecond // between attempts until discovery is done, or an owner's other reconcile has ended

// Reconcile brings one owner closer to its spec. It is called when the owner, one of its sets, or
// one of their objects changed. Owners of other clusters are reconciled in their lanes.
func (r *Reconciler) Reconcile(ctx context.Context, key objects.OwnerKey) (reconcile.Result, error) {
	ctx = r.Queues.of(key).WithProgress(ctx, key)
	if err := r.RestoreClaims(ctx); errors.Is(err, livestate.ErrNotReady) {
		return reconcile.Result{RequeueAfter: deploymentStart}, nil
	} else if err != nil {
		return reconcile.Result{}, err
	}

	return r.reconcileIn(ctx, key, r.lanes)
}

// reconcileIn reconciles an owner, or adds it to its lane in to. A call from the lane itself, or by a
// manager without lanes, has nil for to.
func (r *Reconciler) reconcileIn(ctx context.Context, key objects.OwnerKey, to *lanes.Lanes) (reconcile.Result, error) {
	s, err := r.read(ctx, key)
	switch {
	case err != nil || s == nil:
		return reconcile.Result{}, err
	case s.ref != nil && to != nil && !s.letsGo():
		to.Add(ctx, s.secretNamespace()+"/"+s.ref.KubeconfigSecretRef.Name, key)
		return reconcile.Result{}, nil
	}
	return s.reconcile(ctx)
}

// reconcile takes the owner through the steps.
func (s *reconciliation) reconcile(ctx context.Context) (reconcile.Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := cancel
	if s.letsGo() {
		stop = func() {} // it waits for no target
	}

	if running, busy := s.busy.LoadOrStore(s.key, stop); busy { // it waits for a target, or is of this name in another cluster
		if s.letsGo() {
			running.(context.CancelFunc)()
		}
		return reconcile.Result{RequeueAfter: deploymentStart}, nil
	}

	defer s.busy.Delete(s.key)
	if err := s.recall(ctx); err != nil {
		return reconcile.Result{}, err
	}

	defer s.rollout.Start(s.Now, limits.ProbeBudget)()
	ctx = log.IntoContext(ctx, log.FromContext(ctx).WithValues("owner", s.key.String()))
	result, err := s.Run(ctx, s.reportFailure, s.attend(s.steps()))
	if s.Hooks.Reconciled != nil {
		s.Hooks.Reconciled(s.rollout)
	}
	return result, err
}

// attend runs steps up to the first failing one. If this process is not allowed to write, a
// deadline starts again once it is.
func (s *reconciliation) attend(steps []func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, step := range steps {
			if err := step(ctx); err != nil {
				if errors.Is(err, leadership.ErrNotLeading) {
					s.attended = time.Time{}
				}
				return err
			}
		}
		return nil
	}
}

// steps returns the steps of the owner as it was read. A step can end the reconcile before the
// later ones.
func (s *reconciliation) steps() []func(context.Context) error {
	type steps = []func(context.Context) error
	switch {
	case s.abandoned():
		return steps{s.finalize}
	case s.unwritten():
		return steps{s.recheckUnwritten, s.forgetCluster, s.finalize}
	case s.away != nil:
		return steps{s.reportAway}
	case s.top().GetDeletionTimestamp() != nil:
		return steps{s.findOrphaned, s.tearDown}
	case s.deployment == nil && lifecycle(s.sets[0]) == corev1alpha1.ObjectSetLifecycleStateArchived:
		return steps{s.archiveAlone}
	}

	return steps{
		s.goWithOwners, s.holdPhase, s.stay, s.ensureFinalizer, s.recordClusterOfSets, s.endTakeBacks,
		s.awaitLists, s.rollOut, s.report, s.performBackground,
	}
}

// rollOut rolls the objects out until no step is due, or until an event has to come first. After
// limits.DeploymentPasses, the rest waits for other owners.
func (s *reconciliation) rollOut(ctx context.Context) error {
	for range limits.DeploymentPasses {
		again, err := s.pass(ctx)
		if err != nil {
			return err
		}
		if !again {
			s.limited = 0
			return nil
		}
		if outdated, err := s.outdated(ctx); err != nil || outdated {
			s.Requeue(0)
			return cmp.Or(err, queueing.ErrEnd)
		}
	}

	s.limited++
	s.Requeue(min(time.Millisecond<<min(s.limited, 20), time.Second))
	return nil
}

// pass takes the first due step of a rollout, and reports whether another one might be due right
// away.
func (s *reconciliation) pass(ctx context.Context) (again bool, err error) {
	if err := s.load(ctx); err != nil {
		return false, err
	}
	if again, err := s.syncSets(ctx); again || err != nil {
		return again, err
	}
	out, err := s.step(ctx, s.want())
	if err != nil || !out.Idle {
		return out.Again, err
	}
	return s.collectRevisions(ctx)
}

// outdated reports whether the spec of the owner was changed, or the owner deleted, since this
// reconcile started.
func (s *reconciliation) outdated(ctx context.Context) (bool, error) {
	top, cached := s.top(), client.Object(s.scope.NewObjectSet())
	switch {
	case s.deployment != nil:
		cached = s.scope.NewObjectDeployment()
	case s.phase != nil:
		cached = s.scope.NewObjectSetPhase()
	}
	err := s.Client.Get(ctx, client.ObjectKeyFromObject(top), cached, client.UnsafeDisableDeepCopy)
	if err != nil {
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	return cached.GetUID() != top.GetUID() || cached.GetGeneration() > top.GetGeneration() || cached.GetDeletionTimestamp() != nil, nil
}

// step takes the owner's next step.
func (s *reconciliation) step(ctx context.Context, want engine.Want) (engine.Outcome, error) {
	out, err := s.Target.Step(ctx, s.rollout, want)
	if !out.Again {
		s.requeueAt(out.RequeueAt)
	}
	return out, err
}

// kept returns the owner's stores for records.
func (s *reconciliation) kept() engine.Want {
	return engine.Want{Store: store{s}, References: store{s}}
}

// want returns the owner's wishes for its objects.
func (s *reconciliation) want() engine.Want {
	want := s.kept()
	if s.current != nil {
		want.Current = s.current.GetUID()
	}

	if s.deployment != nil {
		spec := s.deployment.ObjectDeploymentSpec()
		want.Paused, want.ReportDrift = spec.Paused || s.awaited, spec.DriftPolicy == corev1alpha1.DriftPolicyReport
		want.Retain = retained(spec.ArchivalPolicy)
		want.RecordsJobs, want.Jobs = true, objectsets.Recorded(s.deployment.ObjectDeploymentStatus())
	}

	if s.phase != nil {
		want.ReportDrift = s.phase.ReportsDrift()
	}
	return want
}

// retained selects the dropped objects that a policy retains.
func retained(policy corev1alpha1.ArchivalPolicy) func(objects.Key) bool {
	switch policy {
	case corev1alpha1.ArchivalPolicyRelease:
		return func(objects.Key) bool { return true }
	case corev1alpha1.ArchivalPolicyReleaseData:
		return objects.Key.KeepsData
	}
	return nil
}

// performBackground performs some of the background work of a rollout that is at rest, after the
// status was written. It leaves the rest to the next reconciles, because the owner might be paused,
// deleted or changed by then.
func (s *reconciliation) performBackground(ctx context.Context) error {
	if s.limited > 0 {
		return nil
	}
	if err := s.referenceSlices(ctx); err != nil {
		return err
	}
	more, err := s.Target.Background(ctx, s.rollout, s.kept())
	if more && err == nil {
		s.Requeue(0)
	}
	return err
}
