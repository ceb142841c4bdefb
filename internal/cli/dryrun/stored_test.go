package dryrun

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/require"
)

// A template has the objects of slices in their phases. An absent slice is an error.
func TestTemplateOfSlices(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	require.NoError(t, corev1alpha1.AddToScheme(scheme))
	slice := &corev1alpha1.ObjectSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1"},
		Objects:    []corev1alpha1.ObjectSetObject{{Object: runtime.RawExtension{Raw: []byte(`{"kind":"ConfigMap"}`)}}},
	}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(slice).Build()
	set := &corev1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	set.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{{Name: "deploy", Slices: []string{slice.Name}}}
	got, err := TemplateOf(t.Context(), reader, corev1alpha1.ScopeNamespaced, set)
	if err != nil || len(got.Phases[0].Objects) != 1 || len(got.Phases[0].Slices) != 0 || len(set.Spec.Phases[0].Slices) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	set.Spec.Phases[0].Slices[0] = "web-2"
	if _, err := TemplateOf(t.Context(), reader, corev1alpha1.ScopeNamespaced, set); err == nil || !strings.Contains(err.Error(), "read slice web-2 of web") {
		t.Error(err)
	}
}
