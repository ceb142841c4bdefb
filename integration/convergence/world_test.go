package convergence_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// patience is how long a round has at most to come to rest.
const patience = harness.Patience

// world is the state that one round changes.
type world struct {
	seed     uint64
	random   *rand.Rand
	images   []image
	version  string // of the API server
	manager  *harness.Manager
	subjects []*subject
	// namespace is the namespace of the Packages.
	namespace string
	// orphaning means that Packages are deleted with Orphan, too: in longer runs, since
	// the garbage collector does not know our kinds at first.
	orphaning bool
	// healed means that packages can reach all desired states from now on.
	healed bool
	// history lists the changes made, for a failure.
	history []string
	begun   time.Time
}

func newWorld(t *testing.T, seed uint64, images []image, version string, orphaning bool) *world {
	t.Helper()
	w := &world{
		seed: seed, random: rand.New(rand.NewPCG(seed, 0)), images: images, version: version, orphaning: orphaning, begun: time.Now(),
	}
	round := fmt.Sprintf("r%x", seed%(1<<32))
	w.namespace = "packages-" + round
	elsewhere := "of-cluster-" + round
	for _, ns := range []string{w.namespace, elsewhere} {
		env.Namespace(t, ns)
	}
	for _, name := range []string{"one", "two", "three"} {
		w.subjects = append(w.subjects, newSubject(corev1alpha1.ScopeNamespaced, w.namespace, name, w.namespace, images))
	}
	w.subjects = append(w.subjects, newSubject(corev1alpha1.ScopeCluster, "", "cluster-"+round, elsewhere, images))
	w.start()
	return w
}

// start starts a manager unless one is running. It leads at once, because there are never two at
// a time.
func (w *world) start() {
	if w.manager == nil {
		w.manager = env.LaunchManager(suite, "--leader-elect=false")
	}
}

// end ends the manager, in an orderly way or as a crash.
func (w *world) end(crash bool) {
	switch {
	case w.manager == nil:
		return
	case crash:
		w.manager.Kill()
	default:
		w.manager.Stop()
	}
	w.manager = nil
}

// note records a change.
func (w *world) note(format string, args ...any) {
	w.history = append(w.history, fmt.Sprintf("%7.3fs  ", time.Since(w.begun).Seconds())+fmt.Sprintf(format, args...))
}

// fail reports a failure with the information to investigate it.
func (w *world) fail(t *testing.T, what string, err error) {
	t.Helper()
	t.Errorf("%s: %v\n%s repeats the round, whose changes were:\n%s\n%s", what, err, w.repeat(), strings.Join(w.history, "\n"), w.describe(t.Context()))
	if w.manager != nil {
		lines := strings.Split(strings.TrimSpace(w.manager.Log()), "\n")
		t.Logf("the manager's log ends with:\n%s", strings.Join(lines[max(0, len(lines)-60):], "\n"))
	}
}

// repeat is how the round is played again.
func (w *world) repeat() string {
	if w.orphaning {
		return fmt.Sprintf("LOCKSTEP_CONVERGENCE=1s LOCKSTEP_SEED=%d", w.seed)
	}
	return fmt.Sprintf("LOCKSTEP_SEED=%d", w.seed)
}

// describe returns the current state of the Packages.
func (w *world) describe(ctx context.Context) string {
	var b strings.Builder
	for _, s := range w.subjects {
		pkg := s.object()
		if err := env.Client.Get(ctx, client.ObjectKeyFromObject(pkg), pkg); err != nil {
			fmt.Fprintf(&b, "%s: %v\n", s, err)
			continue
		}
		fmt.Fprintf(&b, "%s, generation %d, deleted %v:\n", s, pkg.GetGeneration(), pkg.GetDeletionTimestamp())
		status := pkg.PackageStatus()
		for _, c := range status.Conditions {
			fmt.Fprintf(&b, "  %s=%s (%d) %s: %.300s\n", c.Type, c.Status, c.ObservedGeneration, c.Reason, c.Message)
		}
		fmt.Fprintf(&b, "  blocking %+v\n", status.Blocking)
	}
	return b.String()
}

// clear removes the namespaces of a round.
func (w *world) clear(t *testing.T) {
	t.Helper()
	for _, ns := range []string{w.namespace, w.subjects[len(w.subjects)-1].objects} {
		require.NoError(t, env.Client.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}))
	}
	for _, kind := range []string{"ConfigMap", "Secret"} {
		require.NoError(t, w.subjects[len(w.subjects)-1].forget(t.Context(), kind))
	}
}

// tolerable drops errors of changes that come too late.
func tolerable(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) || meta.IsNoMatchError(err) {
		return nil
	}
	return err
}
