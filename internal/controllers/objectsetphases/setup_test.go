package objectsetphases

import (
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
)

// A manager also has deployments, but reconciles at most as many owners at a time as an agent,
// which only has phases.
func TestWorkersAreShared(t *testing.T) {
	t.Parallel()
	manager, agent := (&class{}).settings(), (&class{target: &corev1alpha1.TargetReference{}}).settings()
	if got := limits.DeploymentWorkers + manager.Workers; manager.Workers == 0 || got != agent.Workers {
		t.Errorf("a manager has %d workers, an agent %d", got, agent.Workers)
	}
}
