package objectdeployments

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/objectsets"
)

// agents returns the reports of the agents for a revision's phases with a class.
func (s *reconciliation) agents(rev *engine.Revision) []objectsets.Agent {
	if s.Target.Cluster == nil {
		return nil
	}
	return objectsets.Agents(rev, s.Target.Cluster)
}

// remotePhases names the existing ObjectSetPhases of a revision. Agents find by them whose objects
// they can take over.
func (s *reconciliation) remotePhases(agents []objectsets.Agent, before []corev1alpha1.RemotePhaseReference) []corev1alpha1.RemotePhaseReference {
	kind := schema.GroupKind{Group: corev1alpha1.GroupVersion.Group, Kind: s.scope.Kind("ObjectSetPhase")}
	if len(agents) > 0 && !s.Target.Cluster.State(kind).Synced {
		return before
	}
	var refs []corev1alpha1.RemotePhaseReference
	for _, agent := range agents {
		if agent.Live != nil {
			refs = append(refs, corev1alpha1.RemotePhaseReference{Name: agent.Key.Name, UID: agent.Live.UID})
		}
	}
	return refs
}
