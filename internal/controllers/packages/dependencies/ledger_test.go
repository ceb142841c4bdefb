package dependencies

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/resolver"
	"lockstep.run/lockstep/test/require"
)

// A change during the resolution of a Package enqueues that Package again, if it turns out to wait
// for it.
func TestChangesDuringAResolution(t *testing.T) {
	t.Parallel()
	enqueued := 0
	l := &Ledger{Enqueue: func(types.NamespacedName) { enqueued++ }}
	own := types.NamespacedName{Namespace: "team", Name: "shop"}
	change := func(name string) bool { return l.Changed(everywhere, func(noted string) bool { return noted == name }) }
	for _, tc := range []struct {
		changes string
		want    int
	}{{"db", 1}, {"other", 0}} {
		enqueued = 0
		l.Open(own)
		l.Changed(everywhere, func(name string) bool { return name == tc.changes })
		enqueued = 0 // by the note of the resolution before
		if l.Note(own, []string{"api", "db"}); enqueued != tc.want {
			t.Errorf("%s changes: %d are enqueued", tc.changes, enqueued)
		}
	}
	if enqueued = 0; !change("db") || enqueued != 1 || len(l.open) > 0 {
		t.Errorf("afterwards: %d are enqueued, %v", enqueued, l.open)
	}
	if l.Drop(own); change("db") || len(l.notes) > 0 {
		t.Error("it is enqueued after it was dropped")
	}
}

// slow reads the Packages of one namespace only on a signal.
type slow struct {
	Packages
	reading, end chan struct{}
}

func (s slow) In(_ context.Context, namespace string) ([]corev1alpha1.GenericPackage, error) {
	if namespace == "large" {
		s.reading <- struct{}{}
		<-s.end
	}
	return nil, nil
}

// A read of the many Packages of a namespace does not block others. A decision of the namespace
// that ends meanwhile can be missing in the result, so the Packages are read again; decisions of
// other namespaces do not cause that.
func TestSurveysOfOthers(t *testing.T) {
	t.Parallel()
	packages := slow{reading: make(chan struct{}), end: make(chan struct{})}
	l := &Ledger{Packages: packages}
	surveyed := make(chan error)
	go func() {
		_, err := l.Survey(t.Context(), "large")
		surveyed <- err
	}()
	decided := func(namespace string) {
		t.Helper()
		c, err := l.Commit(t.Context(), resolver.Instance{Namespace: namespace, Name: "x"}, &Plan{}, Known{}, false)
		require.NoError(t, err)
		c.Done()
	}
	<-packages.reading
	decided("small")
	var done func()
	_ = l.locked(func() error {
		done = l.decide(t.Context(), resolver.Instance{Namespace: "large", Name: "x"}, Decision{})
		return nil
	})
	done()
	packages.end <- struct{}{}
	<-packages.reading // again
	decided("small")
	packages.end <- struct{}{}
	require.NoError(t, <-surveyed)
}
