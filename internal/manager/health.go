package manager

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/limits"
)

const standbyCheckMax = 30 * time.Second // of one check whether a standby could lead, and between two: CRDs and roles of an upgrade come a moment later

// readiness is whether this process does its work, or could do it: a rolling update removes the
// leader once another process is ready. A leader is ready when its caches are in sync. A standby is
// ready when it could read, decode and write every kind once; a process that leads at once shows
// that by its work.
type readiness struct {
	client  client.Client // writes reviews without the Lease
	config  *Config
	elected <-chan struct{}
	log     logr.Logger
	able    atomic.Bool // as a standby
	synced  atomic.Bool // as the leader
}

var (
	errNotAble   = errors.New("this process has not yet read, decoded and been allowed to write every kind; its log has the reason")
	errNotSynced = errors.New("the caches of the leader are not in sync")
)

// newReadiness returns the readiness of mgr. config is not guarded.
func newReadiness(mgr ctrl.Manager, config *rest.Config, c *Config) (*readiness, error) {
	reviews, err := client.New(http1Config(config), client.Options{Scheme: mgr.GetScheme()})
	if err != nil {
		return nil, fmt.Errorf("make a client for the readiness: %w", err)
	}
	return &readiness{client: reviews, config: c, elected: mgr.Elected(), log: mgr.GetLogger().WithName("readiness")}, nil
}

// addTo serves the readiness as /readyz of mgr.
func (r *readiness) addTo(mgr ctrl.Manager) error {
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("add /healthz: %w", err)
	}
	if err := mgr.AddReadyzCheck("work", r.check); err != nil {
		return fmt.Errorf("add /readyz: %w", err)
	}
	return mgr.Add(leaderFunc(func(ctx context.Context) error {
		r.synced.Store(mgr.GetCache().WaitForCacheSync(ctx))
		return nil
	}))
}

// check is the check of /readyz. It sends no request.
func (r *readiness) check(*http.Request) error {
	select {
	case <-r.elected:
		if !r.synced.Load() {
			return errNotSynced
		}
	default:
		if !r.able.Load() {
			return errNotAble
		}
	}
	return nil
}

// run finds out whether this process could work, until it could once or leads.
func (r *readiness) run(ctx context.Context) {
	delays := wait.Backoff{Duration: limits.LeaseRetry, Cap: standbyCheckMax, Factor: 2, Jitter: 0.2, Steps: 32}
	for logged := ""; ; {
		select {
		case <-ctx.Done():
			return
		case <-r.elected:
			return
		case <-time.After(delays.Step()):
		}
		err := panics.Guard(ctx, "checking whether this process could lead", func() error { return r.rehearse(ctx) })
		if err == nil {
			r.able.Store(true)
			return
		}
		if message := err.Error(); message != logged {
			r.log.Info("this process could not lead, and is not ready; it is tried again", "reason", message)
			logged = message
		}
	}
}

// rehearse reads and decodes an object of every kind, and checks whether it can be written, like
// the Lease.
func (r *readiness) rehearse(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, standbyCheckMax)
	defer cancel()
	lease := &authorizationv1.ResourceAttributes{
		Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Namespace: r.config.Namespace, Name: r.config.lease(),
	}
	// A process without election needs no Lease.
	if r.config.LeaderElect {
		if err := r.allowed(ctx, lease); err != nil {
			return err
		}
	}

	for _, kind := range kindsOf(r.client.Scheme(), r.config) {
		if err := r.rehearseKind(ctx, kind); err != nil {
			return err
		}
	}

	return nil
}

// rehearseKind checks one kind: it is served, an object can be decoded, and patches are allowed.
func (r *readiness) rehearseKind(ctx context.Context, kind string) error {
	gvk := corev1alpha1.GroupVersion.WithKind(kind)
	mapping, err := r.client.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return fmt.Errorf("the API server does not serve the kind %s: install the CRDs of this version first, which are in config/crds", kind)
	}
	if err != nil {
		return fmt.Errorf("look up the kind %s: %w", kind, err)
	}

	list, err := r.client.Scheme().New(gvk.GroupVersion().WithKind(kind + "List"))
	if err != nil {
		return err
	}
	if err := r.client.List(ctx, list.(client.ObjectList), client.Limit(1), client.InNamespace(r.config.WatchNamespace)); err != nil {
		return fmt.Errorf("read and decode a %s: %w", kind, err)
	}

	return r.allowed(ctx, &authorizationv1.ResourceAttributes{
		Verb: "patch", Group: gvk.Group, Resource: mapping.Resource.Resource, Namespace: r.config.WatchNamespace,
	})
}

// allowed returns an error if this process lacks a right.
func (r *readiness) allowed(ctx context.Context, to *authorizationv1.ResourceAttributes) error {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: to}}
	if err := r.client.Create(ctx, review); err != nil {
		return fmt.Errorf("check whether this process is allowed to %s %s.%s: %w", to.Verb, to.Resource, to.Group, err)
	}
	if !review.Status.Allowed {
		return fmt.Errorf("this process may not %s %s.%s: install the roles of this version first, which are in config/rbac", to.Verb, to.Resource, to.Group)
	}
	return nil
}

// kindsOf returns the kinds that a process reconciles, in order.
func kindsOf(scheme *runtime.Scheme, c *Config) []string {
	if c.agent() {
		kinds := []string{"ObjectSetPhase"}
		if c.WatchNamespace == "" {
			kinds = append(kinds, "ClusterObjectSetPhase")
		}
		return kinds
	}

	var kinds []string
	known := scheme.KnownTypes(corev1alpha1.GroupVersion)
	for kind := range known {
		if _, ok := known[kind+"List"]; ok {
			kinds = append(kinds, kind)
		}
	}

	slices.SortFunc(kinds, strings.Compare)
	return kinds
}
