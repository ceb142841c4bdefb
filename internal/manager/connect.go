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
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/livestate"
	"lockstep.run/lockstep/internal/rollout"
	"lockstep.run/lockstep/internal/schemas"
)

// connect adds everything that runs to mgr. config is guarded.
func connect(mgr ctrl.Manager, config *rest.Config, c *Config, env manifestsv1alpha1.PackageEnvironment) error {
	if err := mgr.Add(ctrlmanager.RunnableFunc(returnMemory)); err != nil {
		return err
	}
	if err := addPolicyCheck(mgr); err != nil {
		return err
	}
	load, err := newLoad(c, mgr.GetLogger().WithName("registry"))
	if err != nil {
		return err
	}
	reconciler, err := packages.Setup(mgr, packages.Options{Load: load, Environment: env})
	if err != nil {
		return fmt.Errorf("set up the controller of packages: %w", err)
	}
	log := mgr.GetLogger()
	changed := func(now manifestsv1alpha1.PackageEnvironment) {
		if err := reconciler.SetEnvironment(context.Background(), now); err != nil {
			log.Error(err, "packages are rendered for the changed cluster when they change themselves")
		}
	}
	if err := mgr.Add(leaderFunc(func(context.Context) error {
		// A standby may have waited for long, through an upgrade of the cluster.
		now, err := detect(config)
		if err == nil && now != env {
			changed(now)
		}
		return err
	})); err != nil {
		return err
	}
	o, err := engine(config, log, func(v version.Info) {
		log.Info("the API server has another version", "kubernetes", v.GitVersion)
		go changed(environmentOf(v)) // it waits for caches, which a callback must not
	})
	if err != nil {
		return err
	}
	if err := mgr.Add(o.Live); err != nil {
		return err
	}
	if err := deployments.Setup(mgr, *o); err != nil {
		return fmt.Errorf("set up the controller of deployments: %w", err)
	}
	return nil
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
