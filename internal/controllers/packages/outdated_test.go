package packages

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/deployment"
	"lockstep.run/lockstep/internal/kube/mutationcache"
	"lockstep.run/lockstep/test/require"
)

func TestOutdated(t *testing.T) {
	t.Parallel()
	written := func(generation string) func(*corev1alpha1.ObjectDeployment) {
		return annotated(corev1alpha1.PackageGenerationAnnotation, generation)
	}
	for name, tc := range map[string]struct {
		reason string
		dep    *corev1alpha1.ObjectDeployment
		want   bool
	}{
		"no deployment":    {reason: "no status was written for any generation"},
		"earlier engine":   {reason: "it was not recorded", dep: newOwned()},
		"changed since":    {reason: "the usual case after a change of the spec", dep: newOwned(written("1"))},
		"same":             {reason: "the usual case at rest", dep: newOwned(written("2"))},
		"known as it was":  {reason: "a process saw the spec as it is by now", dep: newOwned(written("3")), want: true},
		"not a number":     {reason: "a user wrote it by hand", dep: newOwned(written("three"))},
		"of a former one":  {reason: "the generations of a new Package start again", dep: newOwned(written("9"), controlledBy("Package", "shop", ""))},
		"without an owner": {reason: "left behind by a former Package", dep: newOwned(written("9"), func(d *corev1alpha1.ObjectDeployment) { d.OwnerReferences = nil })},
		"of another owner": {reason: "not ours to write at all", dep: newOwned(written("9"), controlledBy("ConfigMap", "someone", ""))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var dep corev1alpha1.GenericObjectDeployment
			if tc.dep != nil {
				dep = tc.dep
			}
			if got := deployment.Outdated(newPackage(), dep); got != tc.want {
				t.Errorf("outdated = %t: %s", got, tc.reason)
			}
		})
	}
}

// A Package that a list shows as it was is read again before anything is made of
// it; a record that is wrong is corrected by the next read.
func TestPackageIsReadAgainWhereItIsOutdated(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	require.NoError(t, corev1alpha1.AddToScheme(scheme))
	is := newPackage(func(p *corev1alpha1.Package) { p.Generation, p.ResourceVersion = 3, "8" })
	is.Spec.Image = "registry.test/shop:v2"
	dep := newOwned(annotated(corev1alpha1.PackageGenerationAnnotation, "3"))
	r, _ := newReconciler(t)
	r.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(newPackage(), dep).Build()
	r.Reader = fake.NewClientBuilder().WithScheme(scheme).WithObjects(is).Build()
	key := types.NamespacedName{Namespace: "team", Name: "shop"}
	s, err := r.gather(t.Context(), key)
	require.NoError(t, err)
	if in := s.newInput(""); s.pkg.PackageSpec().Image != is.Spec.Image || in.Pkg.PackageSpec().Image != is.Spec.Image {
		t.Errorf("it continues with %s, for %s", s.pkg.PackageSpec().Image, in.Pkg.PackageSpec().Image)
	}
	require.NoError(t, r.Reader.(client.Client).Delete(t.Context(), is))
	r.Fresh = mutationcache.NewStore()
	if s, err = r.gather(t.Context(), key); err == nil && s != nil && s.pkg.GetDeletionTimestamp() == nil {
		t.Errorf("a deleted Package is reconciled: %+v", s.pkg)
	}

	wrong := newOwned(annotated(corev1alpha1.PackageGenerationAnnotation, "9"))
	Accounts{}.copySettings(wrong, newPackage())
	if deployment.Outdated(newPackage(), wrong) {
		t.Errorf("the record stays wrong: %v", wrong.Annotations)
	}
}

// A Package that is cached only in part is read on each reconcile, and its texts are not kept.
func TestReducedPackageIsRead(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	require.NoError(t, corev1alpha1.AddToScheme(scheme))
	whole := newPackage(func(p *corev1alpha1.Package) { p.Spec.Config = &runtime.RawExtension{Raw: []byte(`{"a":"b"}`)} })
	reduced := whole.DeepCopy()
	mutationcache.Reduce(reduced)
	r, _ := newReconciler(t)
	r.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(reduced).Build()
	r.Reader = fake.NewClientBuilder().WithScheme(scheme).WithObjects(whole).Build()
	for range 2 {
		s, err := r.gather(t.Context(), types.NamespacedName{Namespace: "team", Name: "shop"})
		require.NoError(t, err)
		if config := s.pkg.PackageSpec().Config; config == nil || string(config.Raw) != `{"a":"b"}` {
			t.Errorf("it continues with the config %v", config)
		}
		older := reduced.DeepCopy()
		older.ResourceVersion = "1"
		if !mutationcache.Reduced(r.Fresh.Latest(older)) {
			t.Error("it is kept")
		}
	}
}
