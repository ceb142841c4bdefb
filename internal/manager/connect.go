package manager

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"lockstep.run/lockstep/internal/controllers/objectdeployments"
	"lockstep.run/lockstep/internal/inputs/environment"
	"lockstep.run/lockstep/internal/inputs/imageconfigs"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/kube/mutationcache"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/kube/quota"
	"lockstep.run/lockstep/internal/loader/registry"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/permissions"
)

// connect adds controllers, caches and checks to mgr. config is guarded, version is the API
// server's, and memory is the memory limit of the process.
func connect(mgr ctrl.Manager, config *rest.Config, c *Config, version string, memory int64) error {
	s, err := newShared(mgr, config, c, version)
	if err != nil {
		return err
	}

	others := newOtherClusters(s, config.WrapTransport)
	deployments, err := s.addDeployments(others)
	if err != nil {
		return err
	}

	ofTemplates, err := s.addTemplates(deployments)
	if err != nil {
		return err
	}

	packages, ofPackages, err := s.addPackages(others)
	if err != nil {
		return err
	}
	if err := s.addHosted(); err != nil {
		return err
	}

	repositories, ofRepositories, err := s.addRepositories()
	if err != nil {
		return err
	}

	keys, err := s.addImageConfigs(packages, repositories)
	if err != nil {
		return err
	}

	for _, runnable := range []ctrlmanager.Runnable{
		s.here.Cache, s.environment, ofPackages, ofRepositories, ofTemplates, keys, others, s.ceiling,
		keepMemorySmall(memory, func() { closeIdle(mgr, s.here.Writer) }),
	} {
		if err := mgr.Add(runnable); err != nil {
			return err
		}
	}

	return addPolicyCheck(mgr)
}

// shared are the parts that several controllers use.
type shared struct {
	ctrl.Manager
	*Config
	here        *connection
	changes     *changes
	environment *environment.Detector
	ceiling     *ceiling
	policies    *imageconfigs.Store
	puller      *registry.Puller
	account     *quota.Memory
	queues      *objectdeployments.Queues
	// slices are the slices that packages have written for deployments.
	slices *mutationcache.Store
	get    sources.Get
	guard  *sources.Guard
	// own are the credentials of the manager.
	own sources.Ref
}

// newShared connects to the cluster and makes the parts that do not belong to one controller.
func newShared(mgr ctrl.Manager, config *rest.Config, c *Config, version string) (*shared, error) {
	log, changed := mgr.GetLogger(), &changes{}
	here, err := newConnection(config, log, nil, changed.kinds.send, changed.versions.send)
	if err != nil {
		return nil, err
	}
	if err := ctrlmetrics.Registry.Register(watched{here.Counts}); err != nil {
		return nil, fmt.Errorf("register the metrics of watches: %w", err)
	}

	account := c.Account
	// Live objects count for their namespace. If it has no room, the tracker keeps less of an object.
	here.tracker.Keep = func(key objects.Key, bytes int64) bool {
		return account.Hold(quota.Key{Namespace: key.Namespace, Name: key.String(), ID: "live object"}, bytes) == nil
	}
	puller, err := newPuller(c, account, log.WithName("registry"))
	if err != nil {
		return nil, err
	}

	detector := environment.New(environment.Options{
		Listen: here.Listen, Mapping: here.Mapping, HostedChanged: changed.hosted.send,
		// The detector does not wait; the lists of packages and templates can wait for the cache.
		Changed: func() { panics.Go(context.Background(), "enqueueing all packages", changed.environment.send) },
	}, version)

	changed.kinds.listen(detector.KindChanged)
	changed.versions.listen(func(v apiversion.Info) {
		log.Info("read the version of the API server", "kubernetes", v.GitVersion)
		detector.VersionChanged(v.GitVersion)
	})
	get := sources.Getter(mgr.GetAPIReader())
	return &shared{
		Manager: mgr, Config: c, here: here, changes: changed, environment: detector,
		ceiling:  &ceiling{listen: here.Listen, last: permissions.Ceiling{Role: c.PermissionCeiling}, changed: changed.ceiling.send},
		policies: &imageconfigs.Store{}, puller: puller, account: account,
		queues: &objectdeployments.Queues{}, slices: mutationcache.NewStore(),
		get: get,
		guard: sources.NewGuard(func(ctx context.Context, review *authorizationv1.SubjectAccessReview) error {
			return mgr.GetClient().Create(ctx, review)
		}, get),
		own: sources.Ref{Kind: sources.KindServiceAccount, Namespace: c.Namespace, Name: c.ServiceAccount},
	}, nil
}

// watches returns watches of the sources that the objects of one controller name.
func (s *shared) watches() *sources.Watches { return sources.NewWatches(s.here.Listen, s.here.Read) }
