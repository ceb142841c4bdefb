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
	// Sources watches the Secrets and ConfigMaps with keys, and nothing else; Get reads them.
	Sources *sources.Watches
	Get     sources.Get
	// Namespace of the manager has them.
	Namespace string
	// Required means that images of packages and repositories that no ImageConfig verifies are refused.
	Required bool
	// Changed is called when what the policies say has changed. It must not block.
	Changed func()
}

// Reconciler reconciles all ImageConfigs.
type Reconciler struct {
	Options
	Client client.Client
	Now    func() time.Time

	queue queueing.Queue[reconcile.Request]
}

// request is the one of all ImageConfigs.
var request = reconcile.Request{NamespacedName: types.NamespacedName{Name: "all"}}

// Setup adds the controller of ImageConfigs to mgr.
func Setup(mgr ctrl.Manager, o Options) error {
	r := &Reconciler{Options: o, Client: mgr.GetClient(), Now: time.Now}
	r.Sources.Enqueue = func(types.NamespacedName) { r.queue.Enqueue(request) }
	controller, err := r.queue.Controller(mgr, queueing.Settings[reconcile.Request]{
		Name: "imageconfig", Workers: 1, BackoffMin: limits.PackageBackoffMin, BackoffMax: limits.PackageBackoffMax,
		Started: func(context.Context) { r.queue.Enqueue(request) }, // also where there is none
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

// Reconcile reads all ImageConfigs with what they name, and replaces the policies.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	list := &corev1alpha1.ImageConfigList{}
	if err := r.Client.List(ctx, list); err != nil {
		return reconcile.Result{}, fmt.Errorf("read ImageConfigs: %w", err)
	}
	refs := imageconfigs.Refs(list.Items, r.Namespace)
	r.Sources.Use(request.NamespacedName, refs)
	objects := make(map[sources.Ref]*sources.Object, len(refs))
	for _, ref := range refs {
		object, err := r.Get(ctx, ref)
		if err != nil {
			return reconcile.Result{}, r.fail(ctx, list.Items, fmt.Errorf("%s cannot be read: %w", ref, err), ref)
		}
		objects[ref] = object
	}
	policies, now := imageconfigs.Policies(list.Items, r.Namespace, objects), r.Now()
	set := imagepolicy.NewSet(policies, r.Required, now)
	if r.Store.Put(set) {
		r.Changed()
	}
	result := reconcile.Result{}
	if next := set.Turns(); !next.IsZero() {
		result.RequeueAfter = next.Sub(now)
	}
	return result, r.report(ctx, list.Items, policies, set.Conflicts())
}

// fail keeps the policies that were read, and reports why the present ones cannot be on those that name what cannot be read.
func (r *Reconciler) fail(ctx context.Context, configs []corev1alpha1.ImageConfig, failure error, ref sources.Ref) error {
	if r.Store.Fail(failure) {
		r.Changed()
	}
	for i := range configs {
		if !slices.Contains(imageconfigs.Refs(configs[i:i+1], r.Namespace), ref) {
			continue
		}
		state := conditions.State{Reason: corev1alpha1.ReasonProgressing, Message: "Waiting: " + failure.Error() + "."}
		if err := r.write(ctx, &configs[i], state); err != nil {
			failure = errors.Join(failure, err)
		}
	}
	return failure
}

func (r *Reconciler) report(ctx context.Context, configs []corev1alpha1.ImageConfig, policies []imagepolicy.Policy, conflicts map[string]string) error {
	states := make(map[string]conditions.State, len(policies))
	for i := range policies {
		states[policies[i].Name] = stateOf(&policies[i], conflicts[policies[i].Name])
	}
	for i := range configs {
		if err := r.write(ctx, &configs[i], states[configs[i].Name]); err != nil {
			return err
		}
	}
	return nil
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
	return conditions.State{Ready: true, Reason: corev1alpha1.ReasonInEffect, Message: "It counts for images with its prefixes."}
}
