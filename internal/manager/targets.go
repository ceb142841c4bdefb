package manager

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/singleflight"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/objectdeployments"
	"lockstep.run/lockstep/internal/controllers/packages"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/inputs/environment"
	"lockstep.run/lockstep/internal/inputs/targets"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/kube/quota"
	buildversion "lockstep.run/lockstep/internal/kube/version"
	"lockstep.run/lockstep/internal/limits"
)

const (
	targetsShare        = 3           // of the memory limit is for all targets together: a third
	targetSchemaTimeout = time.Second // for the schema of one kind of a target that a dependency needs fields of
)

// otherClusters connects to the targets of packages.
type otherClusters struct {
	*targets.Targets[*session]
	shared *shared
	log    logr.Logger
	guard  transport.WrapperFunc
	home   *homeCluster
}

// session is the connection to one target.
type session struct {
	deployments *objectdeployments.Target
	packages    *packages.Target
}

// newOtherClusters returns the targets of both controllers. guard refuses writes without the Lease.
func newOtherClusters(s *shared, guard transport.WrapperFunc) *otherClusters {
	o := &otherClusters{shared: s, log: s.GetLogger().WithName("target"), guard: guard, home: &homeCluster{reader: s.GetAPIReader()}}
	o.Targets = targets.New(targets.Options[*session]{
		Memory: quota.Of(s.account.Limit() / targetsShare),
		Get:    s.get, Listen: s.here.Listen, Read: s.here.Read, Home: o.home.get, Open: o.open,
		Policy: s.policy(s.AllowLocalTargets), Namespace: s.Namespace,
	})
	return o
}

// homeCluster is the manager's own cluster, known by the UID of its namespace kube-system.
type homeCluster struct {
	reader client.Reader

	uid    atomic.Pointer[types.UID]
	flight singleflight.Group
}

// get reads the UID once for all. Callers that come meanwhile wait for it, each no longer than its
// own context.
func (h *homeCluster) get(ctx context.Context) (types.UID, error) {
	if uid := h.uid.Load(); uid != nil {
		return *uid, nil
	}

	read := h.flight.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limits.TargetProbeTimeout)
		defer cancel()
		m := &metav1.PartialObjectMetadata{}
		m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
		if err := h.reader.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, m); err != nil {
			return nil, fmt.Errorf("read the namespace %s: %w", metav1.NamespaceSystem, err)
		}
		h.uid.Store(&m.UID)
		return m.UID, nil
	})

	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case r := <-read:
		uid, _ := r.Val.(types.UID)
		return uid, r.Err
	}
}

// open connects to a target until the context ends.
func (o *otherClusters) open(ctx context.Context, ref targets.Ref, config *rest.Config, id types.UID, held func(int64)) (*session, error) {
	home, err := o.home.get(ctx)
	if err != nil {
		return nil, err
	}

	config.UserAgent, config.WarningHandler = "lockstep-manager/"+buildversion.Get(), rest.NoWarnings{}
	config.Wrap(o.guard)
	kubernetes, err := targetVersion(ctx, config)
	if err != nil {
		return nil, err
	}

	changed := &changes{}
	there, err := newConnection(config, o.log.WithValues("secret", ref.String()), held, changed.kinds.send, changed.versions.send)
	if err != nil {
		return nil, err
	}

	detector := environment.New(environment.Options{
		Listen: there.Listen, Mapping: there.Mapping, Changed: func() { panics.Go(ctx, "notifying users of a target", func() { o.Notify(ref) }) },
	}, kubernetes)

	changed.kinds.listen(detector.KindChanged)
	changed.kinds.listen(o.shared.changes.awaited.send)
	changed.versions.listen(func(v version.Info) {
		if len(v.GitVersion) <= limits.TargetVersionBytes {
			detector.VersionChanged(v.GitVersion)
		}
	})

	executor := &engine.Engine{Cluster: there, Tracker: there.tracker, Pool: engine.NewPool(limits.TargetWritesInFlight, limits.TargetWritesInFlight), Count: count}
	s := &session{
		deployments: objectdeployments.NewTarget(executor, o.home.reader, o.shared.queues.Enqueue, id, home),
		packages: &packages.Target{
			ID: id, Environment: detector, Namespaced: there.namespaced,
			// Schemas of a target are not waited for long.
			ServedAPI: servedAPI(there, targetSchemaTimeout, func(gk schema.GroupKind, api *corev1alpha1.DependencyAPI, err error) {
				o.log.Info("a schema of a target cannot be read; it is read again", "secret", ref.String(), "apiVersion", api.APIVersion, "kind", api.Kind, "reason", err.Error())
				o.shared.changes.schemaFollows(gk)
			}),
		},
	}

	panics.Go(ctx, "watching a target", func() { _ = there.Start(ctx) })
	panics.Go(ctx, "looking at a target", func() { _ = detector.Start(ctx) }) // it ends with the context alone
	return s, there.discovered(ctx)
}

// discovered waits until the APIs of the cluster are known.
func (c *connection) discovered(ctx context.Context) error {
	var err error
	pollErr := wait.PollUntilContextTimeout(ctx, discoveryPoll, limits.TargetRequestTimeout, true, func(context.Context) (bool, error) {
		_, err = c.Mapping(schema.GroupKind{Kind: "Namespace"}, "")
		return err == nil, nil
	})
	return cmp.Or(err, pollErr)
}

// discoveryPoll is the interval at which the result of discovery is looked at, without a request.
const discoveryPoll = 20 * time.Millisecond

// targetVersion reads the version of a target, whose API server is not trusted: the version gets
// into statuses and templates.
func targetVersion(ctx context.Context, config *rest.Config) (string, error) {
	config = rest.CopyConfig(config)
	config.Timeout = limits.TargetProbeTimeout
	version, err := versionOf(ctx, config)
	if err == nil && len(version) > limits.TargetVersionBytes {
		return "", fmt.Errorf("its version has %d bytes; the limit is %d", len(version), limits.TargetVersionBytes)
	}
	return version, err
}

// ofDeployments are the targets as the controller of deployments uses them.
type ofDeployments struct{ *otherClusters }

// Find returns the session of a target.
func (o ofDeployments) Find(ref targets.Ref) (*objectdeployments.Target, targets.State) {
	s, ok, state := o.Targets.Find(ref)
	if !ok {
		return nil, state
	}
	return s.deployments, state
}

// ofPackages are the targets as the controller of packages uses them.
type ofPackages struct{ *otherClusters }

// Find returns the session of a target.
func (o ofPackages) Find(ref targets.Ref) (*packages.Target, targets.State) {
	s, ok, state := o.Targets.Find(ref)
	if !ok {
		return nil, state
	}
	return s.packages, state
}
