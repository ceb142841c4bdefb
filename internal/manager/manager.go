package manager

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"runtime/debug"
	"time"

	"github.com/go-logr/logr"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/leadership"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/kube/quota"
	"lockstep.run/lockstep/internal/kube/version"
	"lockstep.run/lockstep/internal/limits"
)

// stopTimeout is the time for reconciles to end at a stop. The pod has 30 s.
const stopTimeout = 15 * time.Second

// Version returns the version of the build.
func Version() string { return version.Get() }

// Run runs the manager until ctx ends, or until it lost the Lease.
func Run(ctx context.Context, c *Config) error {
	logger, err := newLogger(c.LogLevel)
	if err != nil {
		return err
	}

	if c.PprofAddress == "0" {
		goruntime.MemProfileRate = 0 // profiles of memory take 2 MB
	}

	memory := debug.SetMemoryLimit(-1) // GOMEMLIMIT; a start uses a part of it
	c.Account = quota.New(memory)
	config, err := restConfig(c.Kubeconfig)
	if err != nil {
		return err
	}

	kubernetes, err := awaitServer(ctx, c, config, logger)
	if ctx.Err() != nil {
		return nil // stopped before it could start
	}
	if err != nil {
		return err
	}

	config.Wrap(retryDiscovery())
	logger.Info("starting", "version", version.Get(), "kubernetes", kubernetes, "namespace", c.Namespace)
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	mgr, guarded, err := newManager(c, config, logger, end)
	if err != nil {
		return err
	}

	if c.agent() {
		err = connectAgent(mgr, guarded, c, memory)
	} else {
		err = connect(mgr, guarded, c, kubernetes, memory)
	}
	if err != nil {
		return err
	}

	elected := mgr.Elected()
	// An agent is not the leader that alerts look for.
	if c.agent() {
		elected = nil
	}

	for _, collector := range processMetrics(elected) {
		if err := metrics.Registry.Register(collector); err != nil {
			return fmt.Errorf("register the metrics of the process: %w", err)
		}
	}

	ready, err := newReadiness(mgr, config, c)
	if err != nil {
		return err
	}
	if err := ready.addTo(mgr); err != nil {
		return err
	}

	panics.Go(ctx, "checking whether this process could lead", func() { ready.run(ctx) })
	err = mgr.Start(ctx)
	if cause := context.Cause(ctx); errors.Is(cause, leadership.ErrRestored) {
		err = cause
	}
	if err != nil {
		return fmt.Errorf("run the manager: %w", err)
	}

	logger.Info("stopped")
	return nil
}

// restConfig reads the connection settings of the API server. The engine bounds its requests
// itself, so the client has no limit of its own.
func restConfig(kubeconfig string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errors.New("no cluster to work on: name a file with --kubeconfig, or run in a pod with a service account")
	}
	if err != nil {
		return nil, fmt.Errorf("read the connection settings of the API server: %w", err)
	}
	config.QPS, config.RateLimiter = -1, nil
	config.UserAgent = "lockstep-manager/" + version.Get()
	return config, nil
}

// versionOf reads the version of the API server with the timeout of config.
func versionOf(ctx context.Context, config *rest.Config) (string, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return "", fmt.Errorf("make a client for discovery: %w", err)
	}
	info, err := client.ServerVersionWithContext(ctx)
	if err != nil {
		return "", fmt.Errorf("ask the API server %s for its version: %w", config.Host, err)
	}
	return info.GitVersion, nil
}

// newManager returns a manager without controllers, and the configuration for all clients that
// write. restored is called if the process has to end because the cluster was restored from a
// backup.
func newManager(c *Config, config *rest.Config, logger logr.Logger, restored func(error)) (ctrl.Manager, *rest.Config, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1alpha1.AddToScheme, corev1.AddToScheme, authorizationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, nil, err
		}
	}

	guard := leadership.Always()
	options := ctrlmanager.Options{
		Scheme: scheme, Logger: logger,
		Metrics:                 metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress:  "0",
		PprofBindAddress:        c.PprofAddress,
		GracefulShutdownTimeout: ptr.To(stopTimeout),
	}

	if c.LeaderElect {
		guard = leadership.NewGuard(clock.RealClock{})
		lock, err := leadership.NewLock(rest.CopyConfig(config), c.Namespace, c.lease(), guard, restored)
		if err != nil {
			return nil, nil, err
		}
		options.LeaderElection, options.LeaderElectionResourceLockInterface = true, lock
		options.LeaderElectionReleaseOnCancel = true
		options.LeaseDuration, options.RenewDeadline = ptr.To(limits.LeaseDuration), ptr.To(limits.LeaseRenewDeadline)
		options.RetryPeriod = ptr.To(limits.LeaseRetry)
	}

	guarded := rest.CopyConfig(config)
	guarded.Wrap(guard.WrapTransport)
	// Warnings are for authors, and a webhook's warning can quote a Secret.
	guarded.WarningHandler = rest.NoWarnings{}
	// Kubernetes 1.37 compresses each event of a watch that started with a list on its own, which
	// takes the API server and the manager, or a local agent, longer than sending it.
	guarded.DisableCompression = true
	options.Cache, options.NewCache = cacheOptions(c), newCache(guarded)
	// Its warnings would have no audience.
	options.Client.FieldValidation = metav1.FieldValidationIgnore
	mgr, err := ctrl.NewManager(http1Config(guarded), options)
	if err != nil {
		return nil, nil, fmt.Errorf("set up the manager: %w", err)
	}

	if !unused(c.MetricsAddress) {
		port, err := newMetrics(c, config, logger)
		if err != nil {
			return nil, nil, err
		}
		if err := mgr.Add(port); err != nil {
			return nil, nil, err
		}
	}

	served, err := newProbed(mgr, c.ProbeAddress)
	return served, guarded, err
}
