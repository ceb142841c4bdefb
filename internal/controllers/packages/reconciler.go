package packages

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/cluster/sources"
	"lockstep.run/lockstep/internal/kube/leadership"
	"lockstep.run/lockstep/internal/kube/mutationcache"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/limits"
)

// Reconciler reconciles Packages and ClusterPackages.
type Reconciler struct {
	// Client reads from the caches and writes; Reader asks the API server.
	Client client.Client
	Reader client.Reader
	Events events.EventRecorder
	Now    func() time.Time

	environment Environment
	// overrides are those of Options.
	overrides  string
	unserved   func(schema.GroupKind) bool
	sources    *sources.Watches
	queue      queueing.Queue[reconcile.Request]
	attempts   *attempts
	tags       *tags
	neighbours *neighbours
	fresh      *mutationcache.Store
	slices     *mutationcache.Store
	keys       keys
	reports    reports
	// mended is when the deployment of each Package was mended.
	mended reports
	// leaving is when the deployment of each Package that goes was seen last.
	leaving reports
	edits   edits
	metrics *metrics
}

// session is one pass over one Package.
type session struct {
	*Reconciler
	view
	// input is what the Package is rendered from.
	input Input
	after time.Duration
}

// Reconcile takes a Package as far as it gets without waiting. Without a
// namespace the request means a ClusterPackage.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	defer r.queue.Begin()()
	s, err := r.gather(ctx, req.NamespacedName)
	if err != nil || s == nil {
		return reconcile.Result{}, err
	}
	if s.pkg.GetDeletionTimestamp() != nil {
		err = s.tearDown(ctx)
	} else {
		err = s.run(ctx)
	}
	return s.result(ctx, err)
}

// conflictRetry is when a pass is repeated that met a newer object; usually the
// event of that object comes first.
const conflictRetry = 50 * time.Millisecond

func (s *session) result(ctx context.Context, err error) (reconcile.Result, error) {
	switch {
	case err == nil:
		return reconcile.Result{RequeueAfter: s.after}, nil
	case errors.Is(err, leadership.ErrNotLeading):
		// The new leader does it; where there is none, this one goes on as soon as it
		// has renewed the Lease.
		return reconcile.Result{RequeueAfter: limits.LeaseRetry}, nil
	case lost(err):
		log.FromContext(ctx).V(1).Info("the cache is behind", "error", err.Error())
		return reconcile.Result{RequeueAfter: conflictRetry}, nil
	}
	return reconcile.Result{}, err
}

// requeue asks for another pass after d at the latest.
func (s *session) requeue(d time.Duration) {
	d = max(d, time.Millisecond)
	if s.after == 0 || d < s.after {
		s.after = d
	}
}

// gather reads a Package and its deployment, as new as they are known to be. It
// returns nil where there is no such Package.
func (r *Reconciler) gather(ctx context.Context, key types.NamespacedName) (*session, error) {
	scope := corev1alpha1.ScopeOf(key.Namespace)
	pkg := scope.NewPackage()
	if err := r.Client.Get(ctx, key, pkg); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	newest, ok := r.fresh.Newest(pkg).(corev1alpha1.GenericPackage)
	if !ok {
		return nil, nil // gone; its event follows
	}
	s := &session{Reconciler: r}
	s.view = view{
		pkg: newest, attempt: r.attempts.of(newest.GetUID()), restored: r.mended.last(newest.GetUID()), now: r.Now(),
	}
	var err error
	if s.dep, err = r.deployment(ctx, key, newest.GetUID()); err != nil {
		return nil, err
	}
	if s.edited, err = r.edits.of(s.dep); err != nil {
		return nil, err
	}
	if outdated(newest, s.dep) {
		if s.pkg, err = r.lookAtPackage(ctx, newest); err != nil || s.pkg == nil {
			return nil, err
		}
	}
	s.input = Input{Package: s.pkg, Namespace: s.keys.namespaceOf(s.pkg)}
	return s, nil
}

// lookAtPackage reads a Package from the API server; nil where it is gone, which
// its event tells of.
func (r *Reconciler) lookAtPackage(ctx context.Context, known corev1alpha1.GenericPackage) (corev1alpha1.GenericPackage, error) {
	pkg := corev1alpha1.ScopeOf(known.GetNamespace()).NewPackage()
	err := r.Reader.Get(ctx, client.ObjectKeyFromObject(known), pkg)
	if apply.IsAbsent(err) || err == nil && pkg.GetUID() != known.GetUID() {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the package, which is known as it was: %w", err)
	}
	r.fresh.Put(pkg)
	return pkg, nil
}

// deployment returns the deployment of that name, or nil.
func (r *Reconciler) deployment(ctx context.Context, key types.NamespacedName, pkg types.UID) (corev1alpha1.GenericObjectDeployment, error) {
	dep := corev1alpha1.ScopeOf(key.Namespace).NewObjectDeployment()
	err := r.Client.Get(ctx, key, dep)
	switch {
	case err == nil:
		dep, _ = r.fresh.Newest(dep).(corev1alpha1.GenericObjectDeployment)
		return dep, nil
	case !apierrors.IsNotFound(err):
		return nil, err
	}
	for _, created := range r.fresh.Created(string(pkg)) {
		return created.(corev1alpha1.GenericObjectDeployment), nil
	}
	return nil, nil
}

// run takes the next step of a Package that stays, and reports.
func (s *session) run(ctx context.Context) error {
	if err := s.ensureFinalizer(ctx); err != nil {
		return err
	}
	if err := s.gatherInputs(); err != nil {
		return err
	}
	s.followTag(ctx)
	o := outcome{}
	o.step, o.why = decide(s.view)
	if o.step == stepGather && o.why == "" {
		return s.settle(ctx) // what it waits for wakes it; nothing is news until then
	}
	if lacksSlices(s.dep) || s.edited {
		s.requeue(restoreEvery)
	}
	var err error
	switch o.step {
	case stepDeploy:
		o.content = s.attempt.content
		err = s.rollOut(ctx)
		o.changed = err == nil && !observed(s.view, o)
	case stepYield, stepAwait:
		s.attempts.drop(s.pkg.GetUID())
	case stepLoad:
		if err = s.load(ctx); err != nil {
			o.step, o.why = stepGather, err.Error()
			break
		}
		err = s.settle(ctx)
	default:
		err = s.settle(ctx)
	}
	if lost(err) {
		return err
	}
	o.writeErr = err
	return errors.Join(s.report(ctx, o), err)
}

// rollOut deploys what was loaded, once: after that only the status is due.
func (s *session) rollOut(ctx context.Context) error {
	if s.dep != nil && !s.attempt.deployed.IsZero() {
		return s.settle(ctx)
	}
	if err := s.deploy(ctx, s.attempt.content); err != nil {
		return err
	}
	s.attempt.deployed = s.Now()
	s.attempts.deployed(s.pkg.GetUID(), s.attempt.deployed)
	return nil
}

// lost reports whether a write was refused for a reason that no status has to
// explain: a conflict, or this process does not lead.
func lost(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || errors.Is(err, leadership.ErrNotLeading)
}

// load begins to load what the Package says now. Secret values of it are hashed
// with a key of the Package.
func (s *session) load(ctx context.Context) error {
	s.input.Image = reference(s.pkg, compare(s.pkg, s.fingerprint), s.moved)
	if sources.FromSecrets(s.pkg.PackageSpec()) {
		key, err := s.keys.of(ctx, s.pkg)
		if err != nil {
			return err
		}
		s.input.HashKey = key
	}
	// A load may wait for long. It holds nothing but what it needs, above all no session.
	key, neighbours := keyOf(s.pkg), s.neighbours
	s.input.turn = s.turn
	s.input.Others = func(name string) []types.NamespacedName { return neighbours.of(key, name) }
	s.metrics.began(s.pkg.GetUID())
	s.attempts.start(ctx, s.input, s.fingerprint, s.moved)
	s.attempt = s.attempts.of(s.pkg.GetUID())
	return nil
}

// ensureFinalizer puts our finalizer on before anything is made for the Package.
func (s *session) ensureFinalizer(ctx context.Context) error {
	if slices.Contains(s.pkg.GetFinalizers(), corev1alpha1.MetricsFinalizer) {
		return nil
	}
	err := s.patch(ctx, s.pkg, func() {
		s.pkg.SetFinalizers(append(slices.Clone(s.pkg.GetFinalizers()), corev1alpha1.MetricsFinalizer))
	})
	if err != nil {
		return fmt.Errorf("put the finalizer on: %w", err)
	}
	return nil
}
