package manager

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/kube/mutationcache"
	"lockstep.run/lockstep/internal/kube/quota"
	"lockstep.run/lockstep/test/require"
)

func newSet(archived bool) *corev1alpha1.ObjectSet {
	set := &corev1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}},
		Annotations:   map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}", "a": "b"},
	}}
	set.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{{
		Name: "deploy", Slices: []string{"s"},
		Objects: []corev1alpha1.ObjectSetObject{{Object: runtime.RawExtension{Raw: []byte("{}")}}},
	}}
	set.Spec.AvailabilityProbes = []corev1alpha1.ObjectSetProbe{{}}
	conditions.Set(&set.Status.Conditions, 1, corev1alpha1.ConditionArchived, archived, "X", "")
	return set
}

func TestCompact(t *testing.T) {
	t.Parallel()
	for name, archived := range map[string]bool{"active": false, "archived": true} {
		got, err := (&ownKinds{}).compact(newSet(archived))
		require.NoError(t, err)
		set := got.(*corev1alpha1.ObjectSet)
		if set.ManagedFields != nil || !cmp.Equal(set.Annotations, map[string]string{"a": "b"}) {
			t.Errorf("%s: %d managed fields, annotations %v", name, len(set.ManagedFields), set.Annotations)
		}
		want := newSet(archived).Spec
		if archived {
			want.Phases[0].Objects, want.AvailabilityProbes = nil, nil
		}
		require.Equal(t, want, set.Spec, name)
	}
}

// TestLargeOwnKinds: the memory of the caches for the Packages and repositories of one namespace is
// bounded by its share, however large they are, and however much other memory the namespace uses.
// It is given back when they are deleted.
func TestLargeOwnKinds(t *testing.T) {
	t.Parallel()
	const number, share = 100, 19 << 20 // of 100 MiB
	text := strings.Repeat("a", 1<<20)
	kinds := map[string]func(meta metav1.ObjectMeta) metav1.Object{
		"config": func(meta metav1.ObjectMeta) metav1.Object {
			return &corev1alpha1.Package{ObjectMeta: meta, Spec: corev1alpha1.PackageSpec{
				Image: "shop:v1", Config: &runtime.RawExtension{Raw: []byte(`{"a":"` + text + `"}`)},
			}}
		},
		"patches": func(meta metav1.ObjectMeta) metav1.Object {
			return &corev1alpha1.Package{ObjectMeta: meta, Spec: corev1alpha1.PackageSpec{
				Image: "shop:v1", Patches: []corev1alpha1.PackagePatch{{Patch: text}}, CommonMetadata: &corev1alpha1.CommonMetadata{Annotations: map[string]string{"a": text}},
			}}
		},
		"inline": func(meta metav1.ObjectMeta) metav1.Object {
			return &corev1alpha1.PackageRepository{ObjectMeta: meta, Spec: corev1alpha1.PackageRepositorySpec{
				Source: corev1alpha1.RepositorySource{Inline: &corev1alpha1.RepositoryInlineSource{Files: map[string]string{"a.yaml": text}}},
			}}
		},
	}
	for name, large := range kinds {
		account := quota.New(100 << 20)
		own := &ownKinds{account}
		sum, reduced := 0, 0
		var all []any
		for i := range number {
			got, err := own.compactSafely(large(metav1.ObjectMeta{
				Namespace: "evil", Name: fmt.Sprint(i), UID: types.UID(fmt.Sprint(i)), Generation: 7,
				Annotations: map[string]string{"a": text[:250<<10], corev1alpha1.RetryAnnotation: "1", "package-operator.run/a": text[:250<<10]},
			}))
			require.NoError(t, err)
			raw, err := json.Marshal(got)
			require.NoError(t, err)
			sum += len(raw)
			all = append(all, got)
			o := got.(metav1.Object)
			if o.GetGeneration() != 7 || o.GetAnnotations()[corev1alpha1.RetryAnnotation] != "1" {
				t.Fatalf("%s: %d lost its metadata", name, i)
			}
			if mutationcache.Reduced(o) {
				if reduced++; len(raw) > 4<<10 {
					t.Fatalf("%s: a reduced one has %d bytes", name, len(raw))
				}
				if again, _ := own.compactSafely(o); !cmp.Equal(again, got) {
					t.Fatalf("%s: it is another one when it is reduced again", name)
				}
			}
		}
		if sum > share || reduced < number/2 {
			t.Errorf("%s: %d KiB are kept of %d objects; %d are reduced", name, sum>>10, number, reduced)
		}
		if other, _ := own.compactSafely(large(metav1.ObjectMeta{Namespace: "victim", Name: "x", UID: "x"})); mutationcache.Reduced(other.(metav1.Object)) {
			t.Errorf("%s: one of another namespace is reduced", name)
		}
		for _, o := range all {
			own.deleted(cache.DeletedFinalStateUnknown{Obj: o})
		}
		if got, _ := own.compactSafely(large(metav1.ObjectMeta{Namespace: "evil", Name: "x", UID: "y"})); mutationcache.Reduced(got.(metav1.Object)) {
			t.Errorf("%s: no memory is given back", name)
		}
	}
	small := &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "evil", Name: "x", UID: "z"}}
	if got, _ := (&ownKinds{quota.New(1)}).compactSafely(small.DeepCopy()); !cmp.Equal(got, any(small)) {
		t.Errorf("a small one is %v", got)
	}
}
