package objectdeployments

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/kube/mutationcache"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/kube/quota"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/internal/phases/claims"
)

// Home is the cluster of our own kinds.
type Home struct {
	// Client reads from caches, in which IndexSets has indexed the sets, and writes.
	// Reader reads from the API server.
	Client client.Client
	Reader client.Reader
	// Events records transitions.
	Events events.EventRecorder
	// Owners watches foreign owners of deployments and lone sets; nil for none.
	Owners *OwnerWatch
	Now    func() time.Time
	// Namespace is the manager's: it has the Secrets of cluster kinds.
	Namespace string
}

// Reconciler reconciles deployments and sets.
type Reconciler struct {
	Home
	// Here is the cluster of our own kinds as a target.
	Here *Target
	// Targets are other clusters; nil where they are not served.
	Targets Targets
	// Class is that of the ObjectSetPhases that are reconciled; empty for none.
	Class string
	// PhaseTarget is where their objects are, if nothing else is reconciled; nil for the
	// cluster of our own kinds.
	PhaseTarget *corev1alpha1.TargetReference
	// namespacedOnly leaves ClusterObjectSetPhases out.
	namespacedOnly bool
	// Hooks are for simulations.
	Hooks Hooks

	enqueue func(objects.OwnerKey)
	// lanes reconcile the owners of other clusters; nil where that is not apart from others.
	lanes *lanes
	// busy are the owners that are reconciled, with what cancels that.
	busy  sync.Map
	fresh *mutationcache.Store
	// memory counts what revisions take; it may be nil.
	memory *quota.Memory
	// written are slices of deployments by the UID of their owner.
	written      *mutationcache.Store
	restored     bool
	restoreSince time.Time // since when the restoration of claims fails
	restoreMu    sync.Mutex
	// prefetched is set during restoreClaims.
	prefetched prefetchedSlices

	queue   *queueing.Queue[objects.OwnerKey]
	metrics metrics

	mu     sync.Mutex
	owners map[objects.OwnerKey]*owner
	claims map[claimants]*claims.Table
}

// Hooks show what a simulation cannot see from outside; nil functions are not called.
type Hooks struct {
	// Loaded is called with each revision that is loaded, before anything is decided.
	Loaded func(*engine.Revision)
	// Planned is called after a reconcile, with its last plan.
	Planned func(*engine.Rollout)
}

// New returns a reconciler of what is in home, which rolls out to here. From then on
// enqueue is called for owners of which an object has changed.
func New(home Home, here *engine.Engine, enqueue func(objects.OwnerKey)) *Reconciler {
	r := &Reconciler{
		Home: home, enqueue: enqueue, fresh: mutationcache.NewStore(), written: mutationcache.NewStore(),
		queue: &queueing.Queue[objects.OwnerKey]{}, owners: map[objects.OwnerKey]*owner{}, claims: map[claimants]*claims.Table{},
	}
	r.Here = r.NewTarget(here, "", "")
	return r
}

// owner is the state of one owner between reconciles.
type owner struct {
	// Target is where the objects of the owner are, nil where that is not connected.
	*Target
	rollout *engine.Rollout
	// digests are those of the specs of sets and of the template of the
	// deployment, by UID; the latter with its generation.
	digests    map[types.UID]objects.Digest
	generation int64
	// counted are the revisions whose memory is counted.
	counted []types.UID
	// reported is when the last status that was not urgent was written, by UID.
	reported map[types.UID]time.Time
	// retryValue is the last value of the retry annotation.
	retryValue string
	// missingReadAt is when the missing slices of a revision were read.
	missingReadAt map[types.UID]time.Time
	// stored are the contents of the slices of loaded revisions.
	stored objectsets.Stored
	// unreferenced are those slices, by name, that have no set as owner yet.
	unreferenced map[string]*metav1.PartialObjectMetadata
	// slicesDue is when unused slices that were too young are collected.
	slicesDue time.Time
	// collected means that this process has collected unused Secrets: an earlier one may
	// have ended before that.
	collected bool
	// collectionDue means that a look for unused slices is due: what takes uses away was
	// written or tried, or a look has failed.
	collectionDue bool
	failures      queueing.Failures
	// limitedReconciles counts reconciles in a row that ended at maxPasses.
	limitedReconciles int
	// overflowReported means that an event reported that no more Jobs are recorded.
	overflowReported bool
	// unseen is since when objects wait for their watches to show what was written;
	// zero where none does.
	unseen time.Time
	// background means that a deployment that is being deleted was not orphaned.
	background bool
}

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

// reportError puts an error on the status of the owner; stalled means that a user has to
// fix it.
func (s *reconciliation) reportError(ctx context.Context, err error, stalled bool) error {
	top, text := s.top(), err.Error()
	deleting := top.GetDeletionTimestamp() != nil
	if s.ref != nil {
		if explained, about := engine.ExplainTarget(err); about {
			text = explained
		}
	}
	if s.ref != nil && deleting {
		text = s.notRemoved(text)
	}
	message := conditions.Message(text)
	typ := corev1alpha1.ConditionReconciling
	if stalled {
		typ = corev1alpha1.ConditionStalled
	}
	if before := meta.FindStatusCondition(*top.StatusConditions(), typ); before != nil && before.Message == message {
		return nil
	}
	return s.patchStatus(ctx, top, func() {
		conditions.Kstatus(top.StatusConditions(), top.GetGeneration(), conditions.State{
			Stalled: stalled, Reason: corev1alpha1.ReasonApplyError, Message: message,
		})
		s.setTarget(top.StatusConditions(), top.GetGeneration())
		if deleting && s.deployment != nil {
			s.deployment.ObjectDeploymentStatus().ObservedGeneration = top.GetGeneration()
		}
	})
}

// startRetry is the delay of the first reconcile until discovery is done.
const startRetry = 5 * time.Millisecond

// conflictRetry is the delay of a reconcile after a conflict.
const conflictRetry = 50 * time.Millisecond

// packageRetry is the delay of a reconcile that would adopt objects for a Package that goes.
const packageRetry = time.Second

// retry clears failures and backoff where the retry annotation has changed.
func (s *reconciliation) retry() {
	value := s.top().GetAnnotations()[corev1alpha1.RetryAnnotation]
	if value == s.retryValue {
		return
	}
	s.retryValue = value
	s.rollout.Retry()
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

// requeue requests a reconcile after d at the latest.
func (s *reconciliation) requeue(d time.Duration) {
	if d <= 0 {
		d = time.Millisecond
	}
	if s.after == 0 || d < s.after {
		s.after = d
	}
}

func (s *reconciliation) requeueAt(at time.Time) {
	if !at.IsZero() {
		s.requeue(at.Sub(s.Now()))
	}
}

func (s *reconciliation) result() reconcile.Result { return reconcile.Result{RequeueAfter: s.after} }

func lifecycle(set corev1alpha1.GenericObjectSet) corev1alpha1.ObjectSetLifecycleState {
	return set.ObjectSetSpec().LifecycleState
}
