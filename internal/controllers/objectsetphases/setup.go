package objectsetphases

import (
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/objectdeployments"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/engine/tracking"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
)

// Setup adds the controller of the ObjectSetPhases to mgr whose objects are in the cluster of our
// own kinds.
func Setup(mgr ctrl.Manager, owners *objectdeployments.Reconciler) error {
	return setup(mgr, owners, &class{name: corev1alpha1.PhaseClassDefault, reader: mgr.GetClient(), fresh: owners.Fresh})
}

// AgentOptions are the parts that SetupAgent connects.
type AgentOptions struct {
	// Class is the class of the ObjectSetPhases.
	Class string
	// NamespacedOnly leaves ClusterObjectSetPhases out.
	NamespacedOnly bool
	// Targets has one target for every name.
	Targets objectdeployments.Targets
	// Queues has the queue of the controller.
	Queues *objectdeployments.Queues
}

// SetupAgent adds only the controller of the ObjectSetPhases of one class to mgr. Their objects are
// in another cluster.
func SetupAgent(mgr ctrl.Manager, o AgentOptions) error {
	home := objectdeployments.Home{Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Events: mgr.GetEventRecorder("lockstep"), Now: time.Now}
	r := objectdeployments.New(home, &engine.Engine{Tracker: tracking.New(apinames.Default)}, o.Queues.Enqueue)
	r.Targets, r.Queues = o.Targets, o.Queues
	return setup(mgr, r, &class{
		name: o.Class, reader: mgr.GetClient(), fresh: r.Fresh, target: &corev1alpha1.TargetReference{}, namespacedOnly: o.NamespacedOnly,
	})
}

// setup adds the controller for a class. An agent does not watch sets and deployments, because its
// rights do not include them.
func setup(mgr ctrl.Manager, owners *objectdeployments.Reconciler, of *class) error {
	owners.Phases = of
	build, err := owners.Queues.Phases.Controller(mgr, of.settings())
	if err != nil {
		return err
	}

	for _, scope := range corev1alpha1.Scopes() {
		if of.namespacedOnly && scope == corev1alpha1.ScopeCluster {
			continue
		}
		owners.Watch(build, scope.NewObjectSetPhase(), of.phaseKeys)
		if of.target == nil {
			owners.Watch(build, scope.NewObjectSet(), of.setKeys)
			owners.Watch(build, scope.NewObjectDeployment(), of.deploymentKeys)
		}
	}

	return build.Complete(owners)
}

// settings returns the controller's settings, which are the same next to the controller of
// deployments and alone in an agent.
func (c *class) settings() queueing.Settings[objects.OwnerKey] {
	workers := limits.PhaseWorkers
	if c.target != nil {
		workers = limits.AgentWorkers
	}
	return objectdeployments.Settings("objectsetphase", workers)
}
