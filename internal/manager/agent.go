package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/objectdeployments"
	"lockstep.run/lockstep/internal/controllers/objectsetphases"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/inputs/targets"
	"lockstep.run/lockstep/internal/kube/outbound"
	"lockstep.run/lockstep/internal/kube/panics"
	buildversion "lockstep.run/lockstep/internal/kube/version"
	"lockstep.run/lockstep/internal/limits"
)

// agentFlags adds the flags of an agent.
func (c *Config) agentFlags(flags *pflag.FlagSet) {
	flags.StringVar(&c.Class, "class", "", "run as the agent of this class of phases, which only rolls out its ObjectSetPhases (default with --target-kubeconfig: "+
		corev1alpha1.PhaseClassHostedCluster+")")
	flags.StringVar(&c.TargetKubeconfig, "target-kubeconfig", "", "for an agent: kubeconfig file of the cluster that the objects are rolled out to")
	flags.StringVar(&c.WatchNamespace, "watch-namespace", "", "for an agent: roll out the ObjectSetPhases of this namespace, and no ClusterObjectSetPhases (default: --namespace)")
	flags.BoolVar(&c.WatchAllNamespaces, "watch-all-namespaces", false,
		"for an agent: roll out the ObjectSetPhases of all namespaces, and ClusterObjectSetPhases; every author of one gets the rights of the target's kubeconfig")
}

// agent reports whether the process is the agent of a class.
func (c *Config) agent() bool { return c.TargetKubeconfig != "" }

// lease returns the name of the Lease.
func (c *Config) lease() string {
	if c.agent() {
		return corev1alpha1.AgentLeaderElectionLease
	}
	return corev1alpha1.LeaderElectionLease
}

// validateAgent checks the flags of an agent, and fills in its class and namespace. Flags of an
// agent without a target would have no effect, so they are refused.
func (c *Config) validateAgent() error {
	if !c.agent() {
		switch {
		case c.Class != "":
			return fmt.Errorf("--class %q: name the cluster that the objects are rolled out to by --target-kubeconfig", c.Class)
		case c.WatchNamespace != "":
			return errors.New("--watch-namespace is for an agent: name its class by --class, and its target by --target-kubeconfig")
		case c.WatchAllNamespaces:
			return errors.New("--watch-all-namespaces is for an agent: name its class by --class, and its target by --target-kubeconfig")
		}
		return nil
	}

	if c.Class == "" {
		c.Class = corev1alpha1.PhaseClassHostedCluster
	}
	if errs := validation.IsValidLabelValue(c.Class); len(errs) > 0 {
		return fmt.Errorf("--class %q: %s", c.Class, errs[0])
	}
	if c.Class == corev1alpha1.PhaseClassDefault {
		return fmt.Errorf("--class %s: the manager of the cluster runs the phases of that class: choose another one", c.Class)
	}
	if errs := validation.IsDNS1123Label(c.WatchNamespace); c.WatchNamespace != "" && len(errs) > 0 {
		return fmt.Errorf("--watch-namespace %q: %s", c.WatchNamespace, errs[0])
	}

	switch {
	// An agent has the rights of its kubeconfig for every author of a phase, so all namespaces have
	// to be requested.
	case !c.WatchAllNamespaces:
		c.WatchNamespace = cmp.Or(c.WatchNamespace, c.Namespace)
	case c.WatchNamespace != "":
		return fmt.Errorf("--watch-namespace %q and --watch-all-namespaces: choose one of both", c.WatchNamespace)
	}

	return nil
}

// agent connects to the target of all ObjectSetPhases.
type agent struct {
	*targets.Targets[*objectdeployments.Target]
	ref    targets.Ref
	log    logr.Logger
	home   *homeCluster
	guard  transport.WrapperFunc
	queues *objectdeployments.Queues
}

// connectAgent adds the controller of the ObjectSetPhases of a class to mgr. config is
// guarded, and memory is the memory limit of the process.
func connectAgent(mgr ctrl.Manager, config *rest.Config, c *Config, memory int64) error {
	file := &targets.File{Path: c.TargetKubeconfig}
	a := &agent{
		ref: file.Ref(), log: mgr.GetLogger().WithName("target"), home: &homeCluster{reader: mgr.GetAPIReader()}, guard: config.WrapTransport,
		queues: &objectdeployments.Queues{},
	}

	a.Targets = targets.New(targets.Options[*objectdeployments.Target]{
		Get: file.Get, Listen: file.Listen, Parse: file.Parse, Home: a.home.get, Open: a.open, Policy: outbound.Policy{Local: true},
		Own: "name another cluster; phases whose objects are in the cluster of the agent have the class " + corev1alpha1.PhaseClassDefault,
	})

	err := objectsetphases.SetupAgent(mgr, objectsetphases.AgentOptions{
		Class: c.Class, NamespacedOnly: c.WatchNamespace != "", Targets: a, Queues: a.queues,
	})
	if err != nil {
		return fmt.Errorf("set up the controller of phases: %w", err)
	}

	for _, runnable := range []ctrlmanager.Runnable{
		a.Targets, keepMemorySmall(memory, func() { utilnet.CloseIdleConnectionsFor(mgr.GetHTTPClient().Transport) }),
	} {
		if err := mgr.Add(runnable); err != nil {
			return err
		}
	}

	return nil
}

// open connects to the target until the context ends.
func (a *agent) open(ctx context.Context, _ targets.Ref, config *rest.Config, id types.UID, held func(int64)) (*objectdeployments.Target, error) {
	home, err := a.home.get(ctx)
	if err != nil {
		return nil, err
	}

	config.UserAgent, config.WarningHandler = "lockstep-manager/"+buildversion.Get(), rest.NoWarnings{}
	// Writes to the target need the Lease of the agent's own cluster, too.
	config.Wrap(a.guard)
	there, err := newConnection(config, a.log, held, func(schema.GroupKind) {}, func(version.Info) {})
	if err != nil {
		return nil, err
	}

	session := objectdeployments.NewTarget(
		&engine.Engine{Cluster: there, Tracker: there.tracker, Pool: engine.NewPool(limits.WritesInFlight, limits.WritesOfNamespace), Count: count},
		a.home.reader, a.queues.Enqueue, id, home,
	)

	panics.Go(ctx, "watching a target", func() { _ = there.Start(ctx) })
	return session, there.discovered(ctx)
}

// Use keeps the target connected for an ObjectSetPhase.
func (a *agent) Use(user string, _ targets.Ref, wake func()) { a.Targets.Use(user, a.ref, wake) }

// Find returns the session of the target.
func (a *agent) Find(targets.Ref) (*objectdeployments.Target, targets.State) {
	session, _, state := a.Targets.Find(a.ref)
	return session, state
}
