package watches

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/ui/page"
	"lockstep.run/lockstep/test/clustertest"
	"lockstep.run/lockstep/test/require"
)

// gated is a cluster that calls a function before each read of a deployment. Every search for a
// cause reads one.
type gated struct {
	clustertest.Listing
	gate func(context.Context) error
}

// Get implements client.Reader.
func (g *gated) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if _, is := obj.(*corev1alpha1.ObjectDeployment); is {
		if err := g.gate(ctx); err != nil {
			return err
		}
	}
	return g.WithWatch.Get(ctx, key, obj, opts...)
}

// gatedDetails returns the Details of a cluster with one invalid package.
func gatedDetails(t *testing.T, gate func(context.Context) error) (*Details, *cluster.Cluster) {
	t.Helper()
	pkg := &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web", Finalizers: []string{corev1alpha1.MetricsFinalizer}}}
	pkg.Status.Conditions = []metav1.Condition{clustertest.Condition("Invalid", "True", "ConfigInvalid", "config.title is missing")}
	cl := clustertest.FakeCluster(t, pkg)
	cl.WithWatch = &gated{Listing: clustertest.Listing{WithWatch: cl.WithWatch}, gate: gate}
	return &Details{cluster: cl, anyKind: func() (client.Client, error) { return cl, nil }}, cl
}

func open(t *testing.T, d *Details) *Detail {
	t.Helper()
	return d.Open(t.Context(), progress.Target{Scope: corev1alpha1.ScopeNamespaced, Namespace: "shop", Name: "web"}, "web")
}

// observed waits until the shown state is as wanted.
func observed(t *testing.T, one *Detail, wanted func(page.Observed) bool) {
	t.Helper()
	changed, end := one.Subscribe()
	defer end()
	late := time.NewTimer(20 * time.Second)
	defer late.Stop()
	for {
		o, _ := one.Observed()
		if wanted(o) {
			return
		}
		select {
		case <-changed:
		case <-late.C:
			t.Fatalf("shown: cause %+v, note %q", o.Cause, o.CauseNote)
		}
	}
}

func because(cause string) func(page.Observed) bool {
	return func(o page.Observed) bool {
		return o.Cause != nil && strings.Contains(o.Cause.Cause, cause) && o.CauseNote == ""
	}
}

// If a package changes during the search for its cause, the search is repeated.
func TestChangeDuringSearch(t *testing.T) {
	t.Parallel()
	begun, proceed := make(chan struct{}, 10), make(chan struct{})
	d, cl := gatedDetails(t, func(ctx context.Context) error {
		begun <- struct{}{}
		select {
		case <-proceed:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	one := open(t, d)
	<-begun
	pkg := &corev1alpha1.Package{}
	require.NoError(t, cl.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, pkg))
	pkg.Status.Conditions[0].Message = "config.replicas is negative"
	require.NoError(t, cl.Status().Update(t.Context(), pkg))
	observed(t, one, func(o page.Observed) bool { return strings.Contains(o.Report.Message, "config.replicas is negative") })
	close(proceed)
	observed(t, one, because("config.replicas is negative"))
}

// A panic during the search for a cause becomes a note on the page, which continues. The next
// loaded page finds the cause.
func TestPanicOfSearch(t *testing.T) {
	t.Parallel()
	var searches atomic.Int32
	d, _ := gatedDetails(t, func(context.Context) error {
		if searches.Add(1) == 1 {
			panic("s3cret of an object")
		}
		return nil
	})
	observed(t, open(t, d), func(o page.Observed) bool {
		return strings.Contains(o.CauseNote, "looking for the cause failed by a defect") && !strings.Contains(o.CauseNote, "s3cret")
	})
	observed(t, open(t, d), because("config.title is missing"))
}
