package repositories

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/mutationcache"
	"lockstep.run/lockstep/test/require"
)

// If only a digest of a repository is cached, its files are read when it is fetched, and when the
// digest changes.
func TestReducedRepositoryIsRead(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.restart(t.Context())
	inline := func(text string) *corev1alpha1.PackageRepository {
		r := &corev1alpha1.PackageRepository{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "own"}}
		r.Spec.Source.Inline = &corev1alpha1.RepositoryInlineSource{Files: map[string]string{"a.yaml": text}}
		return r
	}
	require.NoError(t, w.server.Create(t.Context(), inline("one")))
	reduced, other := inline("one"), inline("two")
	mutationcache.Reduce(reduced)
	mutationcache.Reduce(other)
	got, err := w.whole(t.Context(), job{repository: reduced})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a.yaml": "one"}, got.repository.RepositorySpec().Source.Inline.Files)
	if sourceHash(reduced.Spec.Source) == sourceHash(other.Spec.Source) {
		t.Error("other files look the same")
	}
	if mutationcache.Reduced(inline("one")) || mutationcache.Bulk(reduced) > 200 {
		t.Error("a whole one is reduced, or a reduced one is large")
	}
}
