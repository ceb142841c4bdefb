package manager

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/apply"
	"lockstep.run/lockstep/internal/controllers/deployments"
	"lockstep.run/lockstep/internal/controllers/packages"
	"lockstep.run/lockstep/internal/fresh"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/livestate"
	"lockstep.run/lockstep/internal/rollout"
	"lockstep.run/lockstep/internal/schemas"
)

// connect adds everything that runs to mgr. config is guarded.
func connect(mgr ctrl.Manager, config *rest.Config, c *Config, env manifestsv1alpha1.PackageEnvironment) error {
	load, err := newLoad(c, mgr.GetLogger().WithName("registry"))
	if err != nil {
		return err
	}
	slices := fresh.NewStore()
	reconciler, err := packages.Setup(mgr, packages.Options{Load: load, Environment: env, Slices: slices, Namespace: c.Namespace})
	if err != nil {
		return fmt.Errorf("set up the controller of packages: %w", err)
	}
	follow := follower{reconciler: reconciler, config: config, known: env, log: mgr.GetLogger()}
	o, err := engine(config, mgr.GetLogger(), follow.changed)
	if err != nil {
		return err
	}
	o.Slices, o.Namespace = slices, c.Namespace
	if err := deployments.Setup(mgr, *o); err != nil {
		return fmt.Errorf("set up the controller of deployments: %w", err)
	}
	for _, runnable := range []ctrlmanager.Runnable{o.Live, leaderFunc(follow.catchUp), ctrlmanager.RunnableFunc(returnMemory)} {
		if err := mgr.Add(runnable); err != nil {
			return err
		}
	}
	return addPolicyCheck(mgr)
}

// follower has packages rendered again when the cluster's version changes.
type follower struct {
	reconciler *packages.Reconciler
	config     *rest.Config
	known      manifestsv1alpha1.PackageEnvironment
	log        logr.Logger
}

// catchUp looks at the version when this process begins to lead: a standby may
// have waited for long, through an upgrade of the cluster.
func (f *follower) catchUp(ctx context.Context) error {
	now, err := detect(f.config)
	if err != nil || now == f.known {
		return err
	}
	return f.reconciler.SetEnvironment(ctx, now)
}

// changed is told by livestate, which must not wait; the list of packages does.
func (f *follower) changed(v version.Info) {
	f.log.Info("the API server has another version", "kubernetes", v.GitVersion)
	go func() {
		if err := f.reconciler.SetEnvironment(context.Background(), environmentOf(v)); err != nil {
			f.log.Error(err, "packages are rendered for the changed cluster when they change themselves")
		}
	}()
}

// engine makes the parts that roll objects out.
func engine(config *rest.Config, log logr.Logger, versionChanged func(version.Info)) (*deployments.Options, error) {
	tracker := rollout.NewTracker()
	// Without the wrapper of a cached discovery: the documents are large, and the
	// checker keeps what it needs of them.
	openapi, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for schemas: %w", err)
	}
	checker := schemas.New(openapi.RESTClient())
	live, err := livestate.New(livestate.Options{
		Config: config, Observe: tracker.Observe, Changed: tracker.Changed,
		KindChanged: func(gk schema.GroupKind) {
			if strings.Contains(gk.Group, ".") {
				checker.Refresh() // the schema of a CRD came, changed or went
			}
			tracker.KindChanged(gk)
		},
		VersionChanged: func(version.Info) { checker.Refresh() },
		Log:            log.WithName("livestate"),
	})
	if err != nil {
		return nil, err
	}
	writer, err := apply.NewWriter(config)
	if err != nil {
		return nil, err
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for metadata: %w", err)
	}
	return &deployments.Options{
		Executor: &rollout.Executor{
			Live: live, Tracker: tracker, Writer: writer, Metadata: meta,
			Schemas: checker, Pool: rollout.NewPool(limits.WritesInFlight), Now: time.Now,
		},
		Live: live, Tracker: tracker, Metadata: meta,
	}, nil
}
