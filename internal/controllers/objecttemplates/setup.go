package objecttemplates

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/kube/mutationcache"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/kube/quota"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/phases/claims"
)

const (
	objectTemplateWorkers = 8 // that are reconciled at a time; each renders on its worker
	objectTemplateShare   = 4 // of these that are of one namespace
)

// Environment is the cluster as templates see it.
type Environment interface {
	// For returns the environment in a namespace, or of a ClusterObjectTemplate. If waiting, it is
	// known in a moment.
	For(namespace string) (env manifestsv1alpha1.PackageEnvironment, waiting bool, err error)
}

// Options are the parts that Setup connects.
type Options struct {
	// Target is the cluster that objects are written to; it is shared with deployments, as are
	// Claims.
	Target *engine.Engine
	Claims *claims.Table
	// RestoreClaims restores the claims of an earlier process before new ones are made. Its error
	// is livestate.ErrNotReady at the start.
	RestoreClaims func(context.Context) error
	Environment   Environment
	// Queue is the queue of the controller.
	Queue *queueing.Queue[reconcile.Request]
	// Sources watches only the objects that templates name.
	Sources *sources.Watches
	// Memory is the account that renderings are counted in.
	Memory *quota.Memory
	// Fresh keeps the responses to writes of templates.
	Fresh *mutationcache.Store
	// Account is the ServiceAccount of namespaced templates, in their namespace; empty for the
	// manager's own identity. AccountRequired means that templates without one are not rendered,
	// AccountRequiredOfAll that ClusterObjectTemplates are not rendered either.
	Account                               string
	AccountRequired, AccountRequiredOfAll bool
	// Namespace is the manager's.
	Namespace string
}

// kind is the kind of namespaced templates.
const kind = "ObjectTemplate"

// Setup adds the controller of ObjectTemplates and ClusterObjectTemplates to mgr.
func Setup(mgr ctrl.Manager, o Options) (*Reconciler, error) {
	r := &Reconciler{Options: o, Client: mgr.GetClient(), Events: mgr.GetEventRecorder("lockstep"), Now: time.Now}
	r.Sources.Enqueue = r.enqueue
	build, err := r.Queue.Controller(mgr, queueing.Settings[reconcile.Request]{
		Name: "objecttemplate", Workers: objectTemplateWorkers, Share: objectTemplateShare,
		BackoffMin: limits.PackageBackoffMin, BackoffMax: limits.PackageBackoffMax,
		NamespaceOf: func(req reconcile.Request) string { return req.Namespace },
		Metrics:     &exporter{reader: r.Client, memory: &r.memory},
	})
	if err != nil {
		return nil, err
	}

	for _, scope := range corev1alpha1.Scopes() {
		build = build.Watches(scope.NewObjectTemplate(), r.Fresh.EventHandler(func(obj client.Object) reconcile.Request {
			return reconcile.Request{NamespacedName: keyOf(obj)}
		}))
	}

	return r, build.Complete(r)
}

func (r *Reconciler) enqueue(key types.NamespacedName) {
	r.Queue.Enqueue(reconcile.Request{NamespacedName: key})
}

// KindChanged is called with a kind that is served in another way than before.
func (r *Reconciler) KindChanged(gk schema.GroupKind) {
	r.Sources.KindChanged(gk)
	for _, key := range r.memory.awaiting(gk) {
		r.enqueue(key)
	}
}

// EnvironmentChanged enqueues all templates. Those that see another environment are rendered.
func (r *Reconciler) EnvironmentChanged() {
	queueing.Repeat(context.Background(), "enqueueing templates for another environment", func(ctx context.Context) error {
		all, err := listTemplates(ctx, r.Client)
		for _, tmpl := range all {
			r.enqueue(keyOf(tmpl))
		}
		return err
	})
}

// listTemplates returns all templates of both scopes from the cache, for reading only.
func listTemplates(ctx context.Context, reader client.Reader) ([]corev1alpha1.GenericObjectTemplate, error) {
	var all []corev1alpha1.GenericObjectTemplate
	for _, scope := range corev1alpha1.Scopes() {
		list := scope.NewObjectTemplateList()
		if err := reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list templates: %w", err)
		}
		all = append(all, list.GenericObjectTemplates()...)
	}
	return all, nil
}

func keyOf(obj client.Object) types.NamespacedName { return client.ObjectKeyFromObject(obj) }
