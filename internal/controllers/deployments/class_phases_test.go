package deployments

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/revisions"
)

// TestAgentsAreNoFailure: an ObjectSetPhase that is still held is reported, and does not
// make the current revision unavailable, whose phases have the same names.
func TestAgentsAreNoFailure(t *testing.T) {
	t.Parallel()
	s := sessionOf(nil, nil)
	s.plan.Reports = []phases.Report{{}, {Phases: []phases.PhaseReport{{Name: "deploy", Opened: true}, {Name: "last", Opened: true}}}}
	s.awaitAgent(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shop-1-deploy"}}, "deploy", "hosted")
	current := &s.plan.Reports[1]
	if len(current.Blocking) != 1 || s.after != agentRetry {
		t.Fatalf("named: %v, again after %s", current.Blocking, s.after)
	}
	if got := revisions.Available(revisions.Standing{Current: current, Previous: &phases.Report{}, Opened: 2}); !got.Status {
		t.Errorf("Available is %+v", got)
	}
}
