package objectdeployments

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objectsets"
)

// agents returns what the agents of a revision's phases with a class report.
func (s *reconciliation) agents(rev *engine.Revision) []objectsets.Agent {
	if s.Target.Cluster == nil {
		return nil
	}
	return objectsets.Agents(rev, s.Target.Cluster)
}

// remotePhases names the ObjectSetPhases of a revision that exist. Agents find by them whose
// objects they may take over.
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

// controlledBy names an object, or in place of an ObjectSetPhase what its agent controls.
func controlledBy(key objects.Key, agents []objectsets.Agent) []corev1alpha1.ControlledObjectReference {
	at := slices.IndexFunc(agents, func(a objectsets.Agent) bool { return a.Key == key })
	if at < 0 {
		return []corev1alpha1.ControlledObjectReference{{Kind: key.Kind, Group: key.Group, Name: key.Name, Namespace: key.Namespace}}
	}
	return agents[at].ControllerOf
}

// sizeOf estimates the size of an entry in JSON.
func sizeOf(ref *corev1alpha1.ControlledObjectReference) int {
	const fields = `{"kind":"","group":"","name":"","namespace":"","version":""},`
	return len(fields) + len(ref.Kind) + len(ref.Group) + len(ref.Name) + len(ref.Namespace)
}

// inTransition reports whether an agent does not control all objects of its phase. A list
// that is too long for a status says nothing.
func inTransition(agents []objectsets.Agent) bool {
	return slices.ContainsFunc(agents, func(a objectsets.Agent) bool {
		size := 0
		for i := range a.ControllerOf {
			size += sizeOf(&a.ControllerOf[i])
		}
		return len(a.ControllerOf) < a.Objects && size < limits.ControllerOfBytes/2
	})
}

// setPaused reports whether a revision is paused, and all of its agents with it.
func setPaused(conds *[]metav1.Condition, gen int64, paused bool, agents []objectsets.Agent) {
	others := slices.ContainsFunc(agents, func(a objectsets.Agent) bool { return a.Live != nil && a.Paused() != paused })
	switch {
	case others:
		conditions.SetUnknown(conds, gen, corev1alpha1.ConditionPaused, corev1alpha1.ReasonPartiallyPaused, "Not all agents of phases with a class have followed yet.")
	case paused:
		conditions.Set(conds, gen, corev1alpha1.ConditionPaused, true, corev1alpha1.ReasonPaused, "Reconciliation is paused: nothing is written.")
	default:
		conditions.Remove(conds, corev1alpha1.ConditionPaused)
	}
}
