package repositories

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/repository"
	"lockstep.run/lockstep/test/require"
)

// A manager that is killed between the writes of a publication leaves a part of it. The next
// manager publishes the source's present content completely in the end, even if it has the digest
// that the status still names and as many versions as before. While the source is unavailable, the
// status reports that the offers might be from both revisions.
func TestHalfPublished(t *testing.T) {
	t.Parallel()
	first, second := contentOf("a", "1.0.0"), contentOf("b", "1.0.0")
	// One version less and one more: the status has the same number for both.
	moved := contentOf("a", "1.0.0")
	moved.Packages[0].Versions[0].Version = "1.1.0"
	for name, next := range map[string]*repository.Content{"changed": second, "moved": moved} {
		for written := range 4 {
			t.Run(fmt.Sprintf("%s/%d", name, written), func(t *testing.T) {
				t.Parallel()
				w := newWorld()
				w.restart(t.Context())
				r := w.addHTTP(t, "stable", first)
				w.converge(t)
				before := w.offered()

				w.contents["stable"], w.now = next, w.now.Add(time.Hour)
				w.dies, w.left = true, written
				for range 3 {
					_, _ = w.reconcile()
				}
				half := w.offered()
				w.restart(t.Context())
				w.dies, w.broken["stable"] = false, true
				w.now = w.now.Add(time.Hour)
				w.converge(t)
				ready := w.condition(t, r, corev1alpha1.ConditionReady)
				warns := strings.Contains(ready.Message, "some of it might be missing, or from another revision")
				if mixed := !cmp.Equal(half, before) && w.artifact(t, r) == digestNamed(t, first); ready.Status != metav1.ConditionFalse || mixed != warns {
					t.Errorf("half published: %t; the status has %s: %s", mixed, ready.Status, ready.Message)
				}
				w.broken["stable"], w.contents["stable"], w.now = false, first, w.now.Add(time.Hour)
				w.converge(t)
				require.Equal(t, before, w.offered(), "after the source went back")
				if c := w.condition(t, r, corev1alpha1.ConditionReady); c.Status != metav1.ConditionTrue || w.artifact(t, r) != digestNamed(t, first) {
					t.Errorf("the status has %s: %s", c.Status, c.Message)
				}
				w.writes = 0
				w.restart(t.Context())
				w.converge(t)
				if w.writes > 0 {
					t.Errorf("after one more restart, %d writes", w.writes)
				}
			})
		}
	}
}

// A changed Secret supersedes a content that could not be published as a whole, and the source
// returns to its former content: it is fetched in whole.
func TestHalfPublishedIsSuperseded(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.restart(t.Context())
	w.addHTTP(t, "stable", contentOf("a", "1.0.0"))
	w.converge(t)
	before := w.offered()
	w.contents["stable"], w.now = contentOf("b", "1.0.0"), w.now.Add(time.Hour)
	w.dies, w.left = true, 1
	for range 3 {
		_, _ = w.reconcile()
	}
	w.dies, w.contents["stable"] = false, contentOf("a", "1.0.0")
	c, _ := w.catalogueOf("team")
	c.states["stable"].attempt.In.versions = "of an earlier Secret"
	w.converge(t)
	require.Equal(t, before, w.offered())
}

// contentOf is a content of two packages, each with a version of an image.
func contentOf(image, version string) *repository.Content {
	c := &repository.Content{}
	for _, name := range []string{"cart", "shop"} {
		c.Packages = append(c.Packages, repository.Package{
			Name: name, Versions: []corev1alpha1.AvailableVersion{{Version: version, Image: "registry.test/" + name + ":" + image}},
		})
	}
	return c
}

func digestNamed(t *testing.T, content *repository.Content) string {
	t.Helper()
	p, err := pack(content)
	require.NoError(t, err)
	return fmt.Sprintf("%x", digestOfContent(p))
}

func (w *world) condition(t *testing.T, r *corev1alpha1.PackageRepository, typ string) metav1.Condition {
	t.Helper()
	require.NoError(t, w.server.Get(t.Context(), keyOf(r), r))
	if c := meta.FindStatusCondition(r.Status.Conditions, typ); c != nil {
		return *c
	}
	return metav1.Condition{}
}

func (w *world) artifact(t *testing.T, r *corev1alpha1.PackageRepository) string {
	t.Helper()
	if err := w.server.Get(t.Context(), keyOf(r), r); err != nil || r.Status.Artifact == nil {
		t.Fatalf("%v, artifact %v", err, r.Status.Artifact)
	}
	return r.Status.Artifact.Digest
}
