package objectdeployments

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/revisions"
)

// TestAgentsAreNoFailure: an ObjectSetPhase that is still held is reported, and does not
// make the current revision unavailable, whose phases have the same names.
func TestAgentsAreNoFailure(t *testing.T) {
	t.Parallel()
	s := reconciliationOf(nil, nil)
	s.plan.Reports = []phases.Report{{}, {Phases: []phases.PhaseReport{{Name: "deploy", Opened: true}, {Name: "last", Opened: true}}}}
	s.awaitAgent(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shop-1-deploy"}}, "deploy", "hosted")
	current := &s.plan.Reports[1]
	if len(current.Blocking) != 1 || s.after != agentRetry {
		t.Fatalf("named: %v, again after %s", current.Blocking, s.after)
	}
	if got := revisions.Available(revisions.AvailabilityInput{Current: current, Previous: &phases.Report{}, Opened: 2}); !got.Status {
		t.Errorf("Available is %+v", got)
	}
}

// TestAwaitedAgentCostsNoWrites: while an agent is awaited the status is written once.
func TestAwaitedAgentCostsNoWrites(t *testing.T) {
	t.Parallel()
	writes := 0
	s := reconciliationOf(nil, nil)
	s.Client = interceptor.NewClient(fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(s.deployment).WithStatusSubresource(s.deployment).Build(), interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, c client.Client, resource string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			writes++
			return c.SubResource(resource).Update(ctx, obj, opts...)
		},
	})
	now := noon
	s.Now = func() time.Time { return now }
	for range 3 {
		s.plan.Reports = []phases.Report{{}}
		s.awaitAgent(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shop-1-deploy"}}, "deploy", "hosted")
		if err := s.reportTeardown(t.Context()); err != nil {
			t.Fatal(err)
		}
		now = now.Add(agentRetry)
	}
	if writes != 1 {
		t.Errorf("%d writes of the same status", writes)
	}
}
