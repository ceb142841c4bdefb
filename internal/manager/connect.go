package manager

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/fetch"
	"lockstep.run/lockstep/internal/cluster"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/cluster/schemas"
	"lockstep.run/lockstep/internal/controllers/hostedclusterpackages"
	imageconfigcontroller "lockstep.run/lockstep/internal/controllers/imageconfigs"
	"lockstep.run/lockstep/internal/controllers/objectdeployments"
	"lockstep.run/lockstep/internal/controllers/objectsetphases"
	"lockstep.run/lockstep/internal/controllers/objecttemplates"
	"lockstep.run/lockstep/internal/controllers/packages"
	"lockstep.run/lockstep/internal/controllers/packages/load"
	"lockstep.run/lockstep/internal/controllers/repositories"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/engine/tracking"
	"lockstep.run/lockstep/internal/inputs/environment"
	"lockstep.run/lockstep/internal/inputs/imageconfigs"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/kube/mutationcache"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/kube/quota"
	buildversion "lockstep.run/lockstep/internal/kube/version"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/registry"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/permissions"
)

const (
	schemaPublished     = 3 * time.Second // until the schema of a new kind is published, at the latest
	schemaFieldsTimeout = 5 * time.Second // for the schema of one kind that a dependency needs fields of
)

// connect adds controllers, caches and checks to mgr. config is guarded, version is that
// of the API server, and memory the memory limit of the process.
func connect(mgr ctrl.Manager, config *rest.Config, c *Config, version string, memory int64) error {
	follow := &follower{config: config, log: mgr.GetLogger()}
	here, err := newConnection(config, mgr.GetLogger(), nil, follow.kindChanged, follow.versionChanged)
	if err != nil {
		return err
	}
	follow.watch(here.Cache, version, c.PermissionCeiling)
	account := quota.New(memory)
	watches := sources.NewWatches(here.Listen, here.Read)
	get := sources.Getter(mgr.GetAPIReader())
	own := sources.Ref{Kind: sources.KindServiceAccount, Namespace: c.Namespace, Name: c.ServiceAccount}
	guard := sources.NewGuard(func(ctx context.Context, review *authorizationv1.SubjectAccessReview) error {
		return mgr.GetClient().Create(ctx, review)
	})
	credentials := sources.NewCredentials(get, watches, own, guard)
	credentials.Follow()
	puller, err := newPuller(c, account, mgr.GetLogger().WithName("registry"))
	if err != nil {
		return err
	}
	if err := ctrlmetrics.Registry.Register(watched{here.Counts}); err != nil {
		return fmt.Errorf("register the metrics of watches: %w", err)
	}
	slices, templates := mutationcache.NewStore(), &objecttemplates.Reconciler{}
	deployments, err := connectDeployments(mgr, here, templates, slices, account, c)
	if err != nil {
		return err
	}
	follow.templates = templates
	processors := queueing.NewProcessors(runtime.GOMAXPROCS(0) - 1)
	rendered, err := connectTemplates(mgr, here, follow, deployments, account, processors, c)
	if err != nil {
		return err
	}
	policies, keys, err := connectImageConfigs(mgr, here, follow, get, c)
	if err != nil {
		return err
	}
	others := newOtherClusters(mgr, here.Cache, account.Limit()/targetsShare, c, config.WrapTransport)
	others.deployments, deployments.Targets = deployments, ofDeployments{others}
	follow.reconciler, err = packages.Setup(mgr, packages.Options{
		Targets: ofPackages{others},
		Pipeline: &load.Pipeline{
			Puller: puller, Memory: account, Prefixes: c.ImagePrefixes, Get: get, Credentials: credentials,
			Guard: guard, ClusterPullSecrets: c.SharedPullSecrets == sharedByCluster, Namespace: c.Namespace,
			Namespaced: here.namespaced,
			Pulled:     pulled, Processors: processors,
		},
		Loaded:      loaded,
		Environment: follow.detector, Policies: policies.Get, Ceiling: follow.ceiling.get, Sources: watches, Underway: deployments.Underway,
		Overrides: c.overrides(),
		Accounts:  c.accounts(),
		ServedAPI: follow.servedAPI(here),
		Unserved:  func(gk schema.GroupKind) bool { return here.State(gk).Unserved() },
		Fresh:     mutationcache.NewStore(), Slices: slices, Namespace: c.Namespace, Version: buildversion.Release(buildversion.Get()), Pace: c.Pace,
	})
	if err != nil {
		return fmt.Errorf("set up the controller of packages: %w", err)
	}
	if err := connectHosted(mgr, follow, c); err != nil {
		return err
	}
	others.packages = follow.reconciler
	named, err := connectRepositories(mgr, here, follow, puller, policies, get, own, guard, account, c)
	if err != nil {
		return err
	}
	for _, runnable := range []ctrlmanager.Runnable{
		here.Cache, follow.detector, watches, named, rendered, keys, others, follow.ceiling, preparation(here.Checker, mgr.GetLogger()),
		keepMemorySmall(memory, func() { closeIdle(mgr, here.Writer) }),
	} {
		if err := mgr.Add(runnable); err != nil {
			return err
		}
	}
	return addPolicyCheck(mgr)
}

// accounts returns as which accounts packages may be installed.
func (c *Config) accounts() packages.Accounts {
	return packages.Accounts{
		Own:     objects.Account{Namespace: c.Namespace, Name: c.ServiceAccount},
		Default: c.DefaultServiceAccount, Required: c.RequireServiceAccount.ofNamespaces(), RequiredOfAll: c.RequireServiceAccount.ofAll(),
	}
}

// connectDeployments adds the controllers of deployments and of phases, whose objects are tracked with those of templates.
func connectDeployments(
	mgr ctrl.Manager, here *connection, templates *objecttemplates.Reconciler, slices *mutationcache.Store, account *quota.Memory, c *Config,
) (*objectdeployments.Reconciler, error) {
	phases := &objectsetphases.Controller{}
	deployments, err := objectdeployments.Setup(mgr, objectdeployments.Options{
		Here:   &engine.Engine{Cluster: here, Tracker: here.tracker, Pool: engine.NewPool(limits.WritesInFlight, limits.WritesOfNamespace), Rights: here.rights, Count: count},
		Listen: here.Listen, Slices: slices, Memory: account, Namespace: c.Namespace,
		Others: func(owner objects.OwnerKey) bool { return templates.Enqueue(owner) || phases.Enqueue(owner) },
	})
	if err != nil {
		return nil, fmt.Errorf("set up the controller of deployments: %w", err)
	}
	if err := phases.Setup(mgr, deployments); err != nil {
		return nil, fmt.Errorf("set up the controller of phases: %w", err)
	}
	return deployments, nil
}

// connectTemplates adds the controller of ObjectTemplates, and returns the watches of their sources.
func connectTemplates(
	mgr ctrl.Manager, here *connection, follow *follower, deployments *objectdeployments.Reconciler, account *quota.Memory,
	processors *queueing.Processors, c *Config,
) (*sources.Watches, error) {
	watches := sources.NewWatches(here.Listen, here.Read)
	watches.Mapping, watches.Whole, watches.Memory = here.Mapping, true, account
	err := follow.templates.Setup(mgr, objecttemplates.Options{
		Target: deployments.Here.Engine, Claims: deployments.ClaimsOf("", ""), RestoreClaims: deployments.RestoreClaims,
		Environment: follow.detector, Sources: watches, Memory: account, Processors: processors, Fresh: mutationcache.NewStore(),
		Account: c.DefaultServiceAccount, AccountRequired: c.RequireServiceAccount.ofNamespaces(), AccountRequiredOfAll: c.RequireServiceAccount.ofAll(), Namespace: c.Namespace,
	})
	if err != nil {
		return nil, fmt.Errorf("set up the controller of templates: %w", err)
	}
	return watches, nil
}

// connectHosted adds the controller of HostedClusterPackages.
func connectHosted(mgr ctrl.Manager, follow *follower, c *Config) (err error) {
	follow.hosted, err = hostedclusterpackages.Setup(mgr, hostedclusterpackages.Options{
		HostedClusters: follow.detector.HostedClusters, Fresh: mutationcache.NewStore(), Pace: c.Pace,
	})
	if err != nil {
		return fmt.Errorf("set up the controller of hosted cluster packages: %w", err)
	}
	return nil
}

// connectImageConfigs adds the controller of ImageConfigs, and returns what keeps their policies, and the watches of their keys.
func connectImageConfigs(
	mgr ctrl.Manager, here *connection, follow *follower, get sources.Get, c *Config,
) (*imageconfigs.Store, *sources.Watches, error) {
	store, watches := &imageconfigs.Store{}, sources.NewWatches(here.Listen, here.Read)
	err := imageconfigcontroller.Setup(mgr, imageconfigcontroller.Options{
		Store: store, Sources: watches, Get: get, Namespace: c.Namespace, Required: c.RequireVerification,
		Changed: func() {
			panics.Go(context.Background(), "enqueueing all packages and repositories", func() {
				follow.reconciler.EnvironmentChanged()
				follow.repositories.PoliciesChanged()
			})
		},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("set up the controller of image configs: %w", err)
	}
	return store, watches, nil
}

// connectRepositories adds the controller of repositories, and returns the watches of what they name.
func connectRepositories(
	mgr ctrl.Manager, here *connection, follow *follower, puller *registry.Puller, policies *imageconfigs.Store, get sources.Get, own sources.Ref,
	guard *sources.Guard, account *quota.Memory, c *Config,
) (watches *sources.Watches, err error) {
	watches = sources.NewWatches(here.Listen, here.Read)
	fetcher := fetch.New(fetch.Options{Puller: puller, Bytes: account.PackageBytes(), Policy: c.policy(c.AllowLocalSources), UserAgent: "lockstep-manager/" + buildversion.Get()})
	follow.repositories, err = repositories.Setup(mgr, repositories.Options{
		Pipeline: &repositories.Pipeline{
			Fetcher: fetcher, Get: get, Memory: account, Credentials: sources.NewCredentials(get, watches, own, guard),
			Guard: guard, Account: c.DefaultServiceAccount, AccountRequired: c.RequireServiceAccount.ofNamespaces(),
			ClusterPullSecrets: c.SharedPullSecrets == sharedByCluster, Namespace: c.Namespace,
		},
		Sources: watches, Policies: policies.Get, Fresh: mutationcache.NewStore(), Namespace: c.Namespace, Pace: c.Pace,
	})
	if err != nil {
		return nil, fmt.Errorf("set up the controller of repositories: %w", err)
	}
	return watches, nil
}

// preparation fetches the largest document of schemas, which nearly every package
// asks for: an API server that was not asked for it yet has to put it together, and
// the first rollout after a start would wait for that.
func preparation(checker *schemas.Checker, log logr.Logger) ctrlmanager.RunnableFunc {
	return func(ctx context.Context) error {
		if err := checker.Prepare(ctx, corev1.SchemeGroupVersion); err != nil {
			log.V(1).Info("schemas are read when a package needs them", "reason", err.Error())
		}
		return nil
	}
}

// follower enqueues packages and templates when the cluster changes.
type follower struct {
	config       *rest.Config
	log          logr.Logger
	detector     *environment.Detector
	reconciler   *packages.Reconciler
	hosted       *hostedclusterpackages.Reconciler
	templates    *objecttemplates.Reconciler
	ceiling      *ceiling
	repositories *repositories.Reconciler
}

// watch makes the detector and the ceiling, which read the cluster through live.
func (f *follower) watch(live *livestate.Cache, version, most string) {
	f.ceiling = &ceiling{listen: live.Listen, last: permissions.Ceiling{Role: most}, changed: func() { f.reconciler.CeilingChanged() }}
	f.detector = environment.New(environment.Options{
		Version: func(ctx context.Context) (string, error) { return serverVersion(ctx, f.config) },
		Listen:  live.Listen, Mapping: live.Mapping, Changed: f.changed, HostedChanged: func() { f.hosted.HostedChanged() },
	}, version)
}

// changed must not wait; the list of packages may, for the cache.
func (f *follower) changed() {
	panics.Go(context.Background(), "enqueueing all packages", func() {
		f.reconciler.EnvironmentChanged()
		f.templates.EnvironmentChanged()
	})
}

// kindChanged and versionChanged are called by livestate, which must not wait.
func (f *follower) kindChanged(gk schema.GroupKind) {
	f.detector.KindChanged(gk)
	f.templates.KindChanged(gk)
	if f.reconciler.KindChanged(gk) {
		// Its schema is published a moment after it.
		panics.After(schemaPublished, "enqueueing packages", func() { f.reconciler.KindChanged(gk) })
	}
}

func (f *follower) versionChanged(v version.Info) {
	f.log.Info("the API server has another version", "kubernetes", v.GitVersion)
	f.detector.VersionChanged(v.GitVersion)
}

// servedAPI reports whether the cluster serves an API, and which fields its schema lacks.
func (f *follower) servedAPI(here *connection) func(*corev1alpha1.DependencyAPI) (bool, []string) {
	return servedAPI(here, schemaFieldsTimeout, func(gk schema.GroupKind, api *corev1alpha1.DependencyAPI, err error) {
		f.log.Info("a schema cannot be read; it is read again", "apiVersion", api.APIVersion, "kind", api.Kind, "reason", err.Error())
		panics.After(schemaPublished, "enqueueing packages", func() { f.reconciler.KindChanged(gk) })
	})
}

// servedAPI reports whether a cluster serves an API, and which fields its schema lacks;
// where that cannot be read in time, all of them, and unread is called.
func servedAPI(
	in *connection, timeout time.Duration, unread func(schema.GroupKind, *corev1alpha1.DependencyAPI, error),
) func(*corev1alpha1.DependencyAPI) (bool, []string) {
	return func(api *corev1alpha1.DependencyAPI) (served bool, missing []string) {
		gv, err := schema.ParseGroupVersion(api.APIVersion)
		if err != nil {
			return false, nil
		}
		gvk := gv.WithKind(api.Kind)
		if _, err = in.Mapping(gvk.GroupKind(), gv.Version); err != nil {
			return false, nil
		}
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		if missing, err = in.Checker.MissingFields(ctx, gvk, api.FieldPaths); err != nil {
			unread(gvk.GroupKind(), api, err)
			return true, api.FieldPaths
		}
		return true, missing
	}
}

// connection is a cluster, and the tracker of its objects.
type connection struct {
	*cluster.Connection
	tracker *tracking.Tracker
}

// namespaced reports whether objects of a kind are in namespaces, if the kind is served.
func (c *connection) namespaced(gk schema.GroupKind) (namespaced, known bool) {
	state := c.State(gk)
	return state.Namespaced, state.Served
}

// rights asks as an account for its rights.
func (c *connection) rights(account objects.Account) engine.Rights {
	return c.Writer.As(account.User())
}

// newConnection connects to a cluster. held counts the memory of what it says; it may be nil.
func newConnection(
	config *rest.Config, log logr.Logger, held func(int64), kindChanged func(schema.GroupKind), versionChanged func(version.Info),
) (*connection, error) {
	tracker := tracking.New(apinames.Default)
	// Without the wrapper of a cached discovery: the documents are large, and the
	// checker keeps what it needs of them.
	openapi, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for schemas: %w", err)
	}
	checker := schemas.NewCounted(openapi.RESTClient(), held)
	live, err := livestate.New(livestate.Options{
		Names:  apinames.Default,
		Config: config, Observe: tracker.Observe, Changed: tracker.Changed, Held: held,
		KindChanged: func(gk schema.GroupKind) {
			if strings.Contains(gk.Group, ".") {
				checker.Refresh() // the schema of a CRD came, changed or went
			}
			tracker.KindChanged(gk)
			kindChanged(gk)
		},
		VersionChanged: func(v version.Info) {
			checker.Refresh()
			versionChanged(v)
		},
		Log: log.WithName("livestate"),
	})
	if err != nil {
		return nil, err
	}
	writer, err := apply.NewWriter(http1Config(config), apinames.Default.FieldManager)
	if err != nil {
		return nil, err
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for metadata: %w", err)
	}
	return &connection{
		Connection: &cluster.Connection{Cache: live, Writer: writer, Checker: checker, Metadata: meta}, tracker: tracker,
	}, nil
}
