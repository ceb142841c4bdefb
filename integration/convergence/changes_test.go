package convergence_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/require"
)

// step makes one change, drawn at random, and gives the manager a random time,
// most often none, to see it.
func (w *world) step(t *testing.T) {
	t.Helper()
	s := w.subjects[w.random.IntN(len(w.subjects))]
	require.NoError(t, tolerable(s.create(t.Context())))
	switch n := w.random.IntN(100); {
	case n < 49:
		w.ask(t, s)
	case n < 59:
		w.bounce(t, s)
	case n < 67:
		w.feed(t, s)
	case n < 73:
		w.remove(t, s)
	case n < 90:
		w.meddle(t, s)
	case n < 96 && w.manager != nil:
		w.note("the manager is killed")
		w.end(true)
	case n < 98 && w.manager != nil:
		w.note("the manager is stopped")
		w.end(false)
	}
	if w.manager == nil && w.random.IntN(3) == 0 {
		w.note("a manager is started")
		w.start()
	}
	w.lapse()
}

// lapse sleeps for a random time, so that changes reach the manager at any point of its work on
// previous changes.
func (w *world) lapse() {
	switch n := w.random.IntN(20); {
	case n < 10:
	case n < 17:
		time.Sleep(time.Duration(w.random.IntN(120)) * time.Millisecond)
	default:
		time.Sleep(time.Duration(w.random.IntN(1300)) * time.Millisecond) // beyond the time for which statuses are held back
	}
}

// ask changes the spec of a Package.
func (w *world) ask(t *testing.T, s *subject) {
	t.Helper()
	what := w.draw(s)
	w.note("%s: %s", s, what)
	require.NoError(t, tolerable(s.apply(t.Context())))
}

// draw changes the desired state of a Package, and describes the change.
func (w *world) draw(s *subject) string {
	n := 14
	if w.healed {
		n = 9 // the other changes can make the desired state unreachable
	}
	switch w.random.IntN(n) {
	case 0, 1:
		i := w.random.IntN(len(w.images))
		s.spec.Image = w.images[i].reference
		return fmt.Sprintf("image v%d", i+1)
	case 2:
		s.configure("size", fmt.Sprint(w.random.IntN(4)))
	case 3:
		s.configure("note", fmt.Sprintf("%q", fmt.Sprint("note ", w.random.IntN(3))))
	case 4:
		s.spec.Component = components[w.random.IntN(len(components))]
		return "component " + s.spec.Component
	case 5:
		s.spec.ConfigFrom = s.valueSources()[:w.random.IntN(3)]
		return fmt.Sprintf("%d sources", len(s.spec.ConfigFrom))
	case 6:
		s.spec.Patches = patchesOf(w.random)
		return fmt.Sprintf("%d patches", len(s.spec.Patches))
	case 7:
		s.spec.CommonMetadata = metadataOf(w.random)
		return "common metadata"
	case 8:
		s.spec.RevisionHistoryLimit = limitOf(w.random)
		return "limit of history"
	case 9, 10:
		s.spec.Paused = !s.spec.Paused
		return fmt.Sprintf("paused %t", s.spec.Paused)
	case 11:
		s.spec.DriftPolicy = []corev1alpha1.DriftPolicy{"", corev1alpha1.DriftPolicyCorrect, corev1alpha1.DriftPolicyReport}[w.random.IntN(3)]
		return "drift policy " + string(s.spec.DriftPolicy)
	case 12:
		s.spec.DeletionPolicy = []corev1alpha1.DeletionPolicy{"", corev1alpha1.DeletionPolicyDelete, corev1alpha1.DeletionPolicyOrphan}[w.random.IntN(3)]
		return "deletion policy " + string(s.spec.DeletionPolicy)
	case 13:
		if w.random.IntN(2) == 0 {
			s.configure("gate", []string{`"open"`, `"stuck"`}[w.random.IntN(2)])
			break
		}
		s.spec.CollisionProtection = []corev1alpha1.CollisionProtection{
			"", corev1alpha1.CollisionProtectionPrevent, corev1alpha1.CollisionProtectionIfNoController, corev1alpha1.CollisionProtectionNone,
		}[w.random.IntN(4)]
		return "collision protection " + string(s.spec.CollisionProtection)
	}
	return fmt.Sprintf("config %s", s.spec.Config.Raw)
}

// bounce changes the desired state and then restores it.
func (w *world) bounce(t *testing.T, s *subject) {
	t.Helper()
	before := *s.spec.DeepCopy()
	config := map[string]string{}
	for k, v := range s.config {
		config[k] = v
	}
	for range 1 + w.random.IntN(2) {
		what := w.draw(s)
		w.note("%s, for a moment: %s", s, what)
		require.NoError(t, tolerable(s.apply(t.Context())))
		w.lapse()
	}
	s.spec, s.config = before, config
	w.note("%s: as before", s)
	require.NoError(t, tolerable(s.apply(t.Context())))
}

// rebound changes the image of Packages at rest and reverts the change before the delayed status
// reports it. For one Package with values from a Secret, it only changes that Secret, so that
// no other event wakes it.
func (w *world) rebound(t *testing.T) {
	t.Helper()
	fed := false
	for _, s := range w.subjects {
		if !s.wanted {
			continue
		}
		if !fed && len(s.spec.ConfigFrom) == 2 {
			fed = true
			w.note("%s: its Secret is changed", s)
			require.NoError(t, s.write(t.Context(), "Secret", fmt.Sprintf("password: correct-horse-battery-%d\n", 10+w.random.IntN(90))))
			continue
		}
		before := s.spec.Image
		for s.spec.Image == before {
			s.spec.Image = w.images[w.random.IntN(len(w.images))].reference
		}
		w.note("%s, for a moment: %s", s, s.spec.Image)
		require.NoError(t, s.apply(t.Context()))
		time.Sleep(time.Duration(100+w.random.IntN(600)) * time.Millisecond) // enough to roll it out, or almost
		if w.manager != nil && w.random.IntN(8) == 0 {
			w.note("the manager is killed")
			w.end(true)
		}
		s.spec.Image = before
		w.note("%s: as before", s)
		require.NoError(t, s.apply(t.Context()))
		w.start()
	}
}

// feed changes a source of a Package's values.
func (w *world) feed(t *testing.T, s *subject) {
	t.Helper()
	kind, text := "ConfigMap", fmt.Sprintf("size: %d\nnote: from the source\n", 4+w.random.IntN(3))
	if w.random.IntN(2) == 0 {
		kind, text = "Secret", fmt.Sprintf("password: correct-horse-battery-%d\n", w.random.IntN(3))
	}
	var err error
	if w.random.IntN(4) == 0 {
		w.note("%s: its %s is removed", s, kind)
		err = s.forget(t.Context(), kind)
	} else {
		w.note("%s: its %s says %q", s, kind, text)
		err = s.write(t.Context(), kind, text)
	}
	require.NoError(t, err)
}

// remove deletes a Package; mostly it is wanted again at once.
func (w *world) remove(t *testing.T, s *subject) {
	t.Helper()
	propagation, again := metav1.DeletePropagationBackground, w.random.IntN(6) > 0
	if !w.healed && w.orphaning && w.random.IntN(3) == 0 {
		propagation, again = metav1.DeletePropagationOrphan, true
	}
	w.note("%s: deleted, %s, wanted again %t", s, propagation, again)
	require.NoError(t, s.remove(t.Context(), again, propagation))
}

// heal lets every Package reach its desired state, from now on.
func (w *world) heal(ctx context.Context) error {
	for _, s := range w.subjects {
		s.heal()
		if err := tolerable(s.apply(ctx)); err != nil {
			return err
		}
	}
	w.healed = true
	w.note("every obstacle is removed")
	return nil
}
