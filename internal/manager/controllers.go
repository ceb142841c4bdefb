package manager

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/fetch"
	"lockstep.run/lockstep/internal/controllers/hostedclusterpackages"
	imageconfigcontroller "lockstep.run/lockstep/internal/controllers/imageconfigs"
	"lockstep.run/lockstep/internal/controllers/objectdeployments"
	"lockstep.run/lockstep/internal/controllers/objectsetphases"
	"lockstep.run/lockstep/internal/controllers/objecttemplates"
	"lockstep.run/lockstep/internal/controllers/packages"
	"lockstep.run/lockstep/internal/controllers/packages/load"
	"lockstep.run/lockstep/internal/controllers/repositories"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/kube/metrics"
	"lockstep.run/lockstep/internal/kube/mutationcache"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/kube/quota"
	buildversion "lockstep.run/lockstep/internal/kube/version"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/registry"
	"lockstep.run/lockstep/internal/objects"
)

// addDeployments adds the controllers of deployments and of phases.
func (s *shared) addDeployments(others *otherClusters) (*objectdeployments.Reconciler, error) {
	deployments, err := objectdeployments.Setup(s.Manager, objectdeployments.Options{
		Here: &engine.Engine{
			Cluster: s.here, Tracker: s.here.tracker, Pool: engine.NewPool(limits.WritesInFlight, limits.WritesOfNamespace), Count: count,
			Rights: func(account objects.Account) engine.Rights { return s.here.Writer.As(account.User()) },
		},
		Targets: ofDeployments{others}, Listen: s.here.Listen, Queues: s.queues, Slices: s.slices, Memory: s.account, Namespace: s.Namespace,
	})
	if err != nil {
		return nil, fmt.Errorf("set up the controller of deployments: %w", err)
	}
	if err := objectsetphases.Setup(s.Manager, deployments); err != nil {
		return nil, fmt.Errorf("set up the controller of phases: %w", err)
	}

	return deployments, nil
}

// addTemplates adds the controller of ObjectTemplates, whose objects are tracked and claimed along
// with the objects of deployments. It returns the watches of their sources.
func (s *shared) addTemplates(deployments *objectdeployments.Reconciler) (*sources.Watches, error) {
	watches := s.watches()
	watches.Mapping, watches.Whole, watches.Memory = s.here.Mapping, true, s.account
	templates, err := objecttemplates.Setup(s.Manager, objecttemplates.Options{
		Target: deployments.Here.Engine, Claims: deployments.ClaimsOf("", ""), RestoreClaims: deployments.RestoreClaims, Queue: &s.queues.Templates,
		Environment: s.environment, Sources: watches, Memory: s.account, Fresh: mutationcache.NewStore(),
		Account: s.DefaultServiceAccount, AccountRequired: s.RequireServiceAccount.ofNamespaces(), AccountRequiredOfAll: s.RequireServiceAccount.ofAll(), Namespace: s.Namespace,
	})
	if err != nil {
		return nil, fmt.Errorf("set up the controller of templates: %w", err)
	}

	s.changes.kinds.listen(templates.KindChanged)
	s.changes.environment.listen(templates.EnvironmentChanged)
	return watches, nil
}

// addPackages adds the controller of packages, and returns the watches of the objects that they
// name.
func (s *shared) addPackages(others *otherClusters) (*packages.Reconciler, *sources.Watches, error) {
	overrides := "" // identifies the settings that affect rendering
	if len(s.ImagePrefixes) > 0 || s.PackageHashModifier != 0 {
		overrides = fmt.Sprintf("%s;%d", s.ImagePrefixes, s.PackageHashModifier)
	}

	watches := s.watches()
	credentials := sources.NewCredentials(s.get, watches, s.own, s.guard)
	credentials.Follow()
	reconciler, err := packages.Setup(s.Manager, packages.Options{
		Targets: ofPackages{others},
		Pipeline: &load.Pipeline{
			Puller: s.puller, Memory: s.account, Prefixes: s.ImagePrefixes, Get: s.get, Credentials: credentials,
			Guard: s.guard, ClusterPullSecrets: s.SharedPullSecrets == sharedByCluster, Namespace: s.Namespace,
			Namespaced: s.here.namespaced,
			Pulled:     func(took time.Duration, err error) { metrics.Pulls.Observe(took, outcome(err != nil, "pulled")) },
		},
		Loaded:      func(took time.Duration, err error) { metrics.Loads.Observe(took, outcome(err != nil, "loaded")) },
		Environment: s.environment, Policies: s.policies.Get, Ceiling: s.ceiling.get, Sources: watches, Underway: s.queues.Underway,
		Overrides: overrides,
		Accounts: packages.Accounts{
			Own:     objects.Account{Namespace: s.Namespace, Name: s.ServiceAccount},
			Default: s.DefaultServiceAccount, Required: s.RequireServiceAccount.ofNamespaces(), RequiredOfAll: s.RequireServiceAccount.ofAll(),
		},
		ServedAPI: servedAPI(s.here, schemaFieldsTimeout, func(gk schema.GroupKind, api *corev1alpha1.DependencyAPI, err error) {
			s.GetLogger().Info("a schema cannot be read; it is read again", "apiVersion", api.APIVersion, "kind", api.Kind, "reason", err.Error())
			s.changes.schemaFollows(gk)
		}),
		Unserved: func(gk schema.GroupKind) bool { return s.here.State(gk).Unserved() },
		Fresh:    mutationcache.NewStore(), Slices: s.slices, Namespace: s.Namespace, Version: buildversion.Release(buildversion.Get()), Pace: s.Pace,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("set up the controller of packages: %w", err)
	}

	s.changes.followPackages(reconciler)
	return reconciler, watches, nil
}

// addHosted adds the controller of HostedClusterPackages.
func (s *shared) addHosted() error {
	hosted, err := hostedclusterpackages.Setup(s.Manager, hostedclusterpackages.Options{
		HostedClusters: s.environment.HostedClusters, Fresh: mutationcache.NewStore(), Pace: s.Pace,
	})
	if err != nil {
		return fmt.Errorf("set up the controller of hosted cluster packages: %w", err)
	}
	s.changes.hosted.listen(hosted.HostedChanged)
	return nil
}

// addRepositories adds the controller of repositories, and returns the watches of the objects that
// they name.
func (s *shared) addRepositories() (*repositories.Reconciler, *sources.Watches, error) {
	watches := s.watches()
	reconciler, err := repositories.Setup(s.Manager, repositories.Options{
		Pipeline: &repositories.Pipeline{
			Fetcher: fetch.New(fetch.Options{
				Puller: s.puller, Bytes: s.account.PackageBytes(), Policy: s.policy(s.AllowLocalSources), UserAgent: "lockstep-manager/" + buildversion.Get(),
			}),
			Get: s.get, Memory: s.account, Credentials: sources.NewCredentials(s.get, watches, s.own, s.guard),
			Guard: s.guard, Account: s.DefaultServiceAccount, AccountRequired: s.RequireServiceAccount.ofNamespaces(),
			ClusterPullSecrets: s.SharedPullSecrets == sharedByCluster, Namespace: s.Namespace,
		},
		Sources: watches, Policies: s.policies.Get, Fresh: mutationcache.NewStore(), Namespace: s.Namespace, Pace: s.Pace,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("set up the controller of repositories: %w", err)
	}

	return reconciler, watches, nil
}

// addImageConfigs adds the controller of ImageConfigs, which keeps their policies, and returns the
// watches of their keys.
func (s *shared) addImageConfigs(ofPackages *packages.Reconciler, ofRepositories *repositories.Reconciler) (*sources.Watches, error) {
	watches := s.watches()
	err := imageconfigcontroller.Setup(s.Manager, imageconfigcontroller.Options{
		Store: s.policies, Sources: watches, Get: s.get, Namespace: s.Namespace, Required: s.RequireVerification,
		Changed: func() {
			panics.Go(context.Background(), "enqueueing all packages and repositories", func() {
				ofPackages.EnvironmentChanged()
				ofRepositories.PoliciesChanged()
			})
		},
	})
	if err != nil {
		return nil, fmt.Errorf("set up the controller of image configs: %w", err)
	}

	return watches, nil
}

// newPuller returns the puller that packages and repositories share, so that an image of both is
// downloaded once and the limits on connections hold for the process.
func newPuller(c *Config, account *quota.Memory, log logr.Logger) (*registry.Puller, error) {
	puller, err := registry.NewPuller(registry.Options{
		CABundle: c.RegistryCAFile, Authorities: c.RegistryCAs, Proxies: c.RegistryProxies, InsecureRegistries: c.InsecureRegistries, CacheDir: c.CacheDir,
		PackageBytes: account.PackageBytes(),
		Policy:       c.policy(c.AllowLocalSources), ImagePrefixes: c.ImagePrefixes, RegistryHosts: c.RegistryHosts,
		UserAgent:    "lockstep-manager/" + buildversion.Get(),
		OnCacheError: func(err error) { log.Error(err, "the image cache cannot be used; pulls go on without it") },
	})
	if err != nil {
		return nil, fmt.Errorf("set up pulling: %w", err)
	}
	return puller, nil
}
