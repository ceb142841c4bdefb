package objectsets

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/objects"
)

// Agent is the report of a phase's agent on its ObjectSetPhase.
type Agent struct {
	*objects.Desired
	// Live is nil if there is no ObjectSetPhase, or if it is not the set's.
	Live *objects.Observed
	// Conditions are those for the present generation; ControllerOf are the objects that
	// the agent has written.
	Conditions   []metav1.Condition
	ControllerOf []corev1alpha1.ControlledObjectReference
	// Objects is the number of objects in the phase.
	Objects int
}

// Agents returns the reports of the agents of a revision, in the order of its phases.
func Agents(r *engine.Revision, live cluster.LiveState) []Agent {
	var agents []Agent
	for _, d := range r.Delegates() {
		a := Agent{Desired: d, Objects: d.Delegate.Objects}
		if obs, shown := live.Observed(d.Key); shown && d.Delegate.Set.Is(obs.Controller()) {
			a.Live = obs
			a.read()
		}
		agents = append(agents, a)
	}

	return agents
}

// read decodes the status of the live ObjectSetPhase. A malformed one reports nothing.
func (a *Agent) read() {
	var phase struct {
		Status corev1alpha1.ObjectSetPhaseStatus `json:"status"`
	}
	if json.Unmarshal(a.Live.Trimmed, &phase) != nil {
		return
	}
	a.ControllerOf = phase.Status.ControllerOf
	a.Conditions = reported(a.Live)
}

// Paused reports whether the agent has paused.
func (a *Agent) Paused() bool {
	return meta.IsStatusConditionTrue(a.Conditions, corev1alpha1.ConditionPaused)
}
