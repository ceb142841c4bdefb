package imageconfigs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/inputs/imageconfigs"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/kube/statuswriter"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
)

// Options are the parts that Setup connects.
type Options struct {
	Store *imageconfigs.Store
	// Sources watches only the Secrets and ConfigMaps with keys; Get reads them.
	Sources *sources.Watches
	Get     sources.Get
	// Namespace of the manager has them.
	Namespace string
	// Required means that images of packages and repositories that no ImageConfig verifies are
	// refused.
	Required bool
	// Changed is called when the policies have changed. It must not block.
	Changed func()
}

// Reconciler reconciles all ImageConfigs.
type Reconciler struct {
	Options
	Client client.Client
	Now    func() time.Time

	queue queueing.Queue[reconcile.Request]
}

// request is the single request of all ImageConfigs.
var request = reconcile.Request{NamespacedName: types.NamespacedName{Name: "all"}}

// Setup adds the controller of ImageConfigs to mgr.
func Setup(mgr ctrl.Manager, o Options) error {
	r := &Reconciler{Options: o, Client: mgr.GetClient(), Now: time.Now}
	r.Sources.Enqueue = func(types.NamespacedName) { r.queue.Enqueue(request) }
	controller, err := r.queue.Controller(mgr, queueing.Settings[reconcile.Request]{
		Name: "imageconfig", Workers: 1, BackoffMin: limits.PackageBackoffMin, BackoffMax: limits.PackageBackoffMax,
		Started: func(context.Context) { r.queue.Enqueue(request) }, // also if there is no ImageConfig
	})
	if err != nil {
		return err
	}

	all := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) (requests []reconcile.Request) {
		_ = panics.Guard(ctx, "handling an event", func() error { requests = []reconcile.Request{request}; return nil })
		return requests
	})

	return controller.Watches(&corev1alpha1.ImageConfig{}, all).Complete(r)
}

// reconciliation is one reconcile of all ImageConfigs.
type reconciliation struct {
	*Reconciler
	queueing.Outcome
	configs  []corev1alpha1.ImageConfig
	policies []imagepolicy.Policy
	// conflicts are by the names of policies.
	conflicts map[string]string
	// unread is the object with keys that cannot be read.
	unread sources.Ref
}

// Reconcile makes the policies, and reports the result on each ImageConfig.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	s := &reconciliation{Reconciler: r}
	return s.Run(ctx, s.report, s.makePolicies)
}

// makePolicies makes the policies of all ImageConfigs. If a key cannot be read, the previous
// policies stay.
func (s *reconciliation) makePolicies(ctx context.Context) error {
	list := &corev1alpha1.ImageConfigList{}
	if err := s.Client.List(ctx, list); err != nil {
		return fmt.Errorf("read ImageConfigs: %w", err)
	}

	s.configs = list.Items
	refs := imageconfigs.Refs(s.configs, s.Namespace)
	s.Sources.Use(request.NamespacedName, refs)
	objects := make(map[sources.Ref]*sources.Object, len(refs))
	for _, ref := range refs {
		object, err := s.Get(ctx, ref)
		if err != nil {
			s.unread, err = ref, fmt.Errorf("%s cannot be read: %w", ref, err)
			if s.Store.Fail(err) {
				s.Changed()
			}
			return err
		}
		objects[ref] = object
	}

	now := s.Now()
	s.policies = imageconfigs.Policies(s.configs, s.Namespace, objects)
	set := imagepolicy.NewSet(s.policies, s.Required, now)
	s.conflicts = set.Conflicts()
	if s.Store.Put(set) {
		s.Changed()
	}
	if next := set.Turns(); !next.IsZero() {
		s.Requeue(next.Sub(now))
	}

	return nil
}

// report writes the changed statuses: after a failure, only the statuses of the ImageConfigs that
// name the object that cannot be read.
func (s *reconciliation) report(ctx context.Context, failed error) error {
	states := make(map[string]conditions.State, len(s.policies))
	for i := range s.policies {
		states[s.policies[i].Name] = stateOf(&s.policies[i], s.conflicts[s.policies[i].Name])
	}

	var errs []error
	for i := range s.configs {
		state := states[s.configs[i].Name]
		if failed != nil {
			if s.unread != (sources.Ref{}) && !slices.Contains(imageconfigs.Refs(s.configs[i:i+1], s.Namespace), s.unread) {
				continue
			}
			state = conditions.State{Reason: corev1alpha1.ReasonProgressing, Message: "Waiting: " + failed.Error() + "."}
		}
		errs = append(errs, s.write(ctx, &s.configs[i], state))
	}

	return errors.Join(errs...)
}

func (r *Reconciler) write(ctx context.Context, config *corev1alpha1.ImageConfig, state conditions.State) error {
	before := config.Status.DeepCopy()
	conditions.Kstatus(&config.Status.Conditions, config.Generation, state)
	config.Status.ObservedGeneration = config.Generation
	if equality.Semantic.DeepEqual(before, &config.Status) {
		return nil
	}
	if err := statuswriter.Write(ctx, r.Client, config); err != nil && !apply.IsAbsent(err) {
		return fmt.Errorf("write the status of the ImageConfig %s: %w", config.Name, err)
	}
	return nil
}

func stateOf(p *imagepolicy.Policy, conflict string) conditions.State {
	if conflict != "" {
		return conditions.State{Stalled: true, Reason: string(imagepolicy.ReasonConflicting), Message: conflict + "."}
	}
	if reason, problem := p.Problem(); problem != "" {
		return conditions.State{Stalled: true, Reason: string(reason), Message: problem + "."}
	}
	return conditions.State{Ready: true, Reason: corev1alpha1.ReasonInEffect, Message: "It applies to images with its prefixes."}
}
