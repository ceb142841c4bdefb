package objectdeployments

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objectsets"
)

// TestSlicesAreListedAtTheStart: a starting manager lists slices if it needs many, and reads the
// ones that the list did not have.
func TestSlicesAreListedAtTheStart(t *testing.T) {
	t.Parallel()
	const many = 3 * limits.SlicesAsked
	for name, tc := range map[string]struct {
		reason      string
		named       int
		refused     error
		lists, gets int
	}{
		"few":     {reason: "a list would have those of everyone in it", named: limits.SlicesAsked, gets: limits.SlicesAsked},
		"many":    {reason: "one list has them all", named: many, lists: 1},
		"refused": {reason: "a failed list must not prevent the start", named: many, refused: errors.New("busy"), lists: 1, gets: many},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := &corev1alpha1.ObjectSet{}
			set.Namespace, set.Name = "shop", "shop-1"
			set.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{{Name: "one"}}
			build := fake.NewClientBuilder().WithScheme(newScheme(t))
			for i := range many {
				slice := &corev1alpha1.ObjectSlice{}
				slice.Namespace, slice.Name = "shop", fmt.Sprint("slice-", i)
				slice.Objects = []corev1alpha1.ObjectSetObject{{Object: runtime.RawExtension{Raw: fmt.Appendf(nil, `{"kind":"ConfigMap","index":%d}`, i)}}}
				build = build.WithObjects(slice)
				if i < tc.named {
					set.Spec.Phases[0].Slices = append(set.Spec.Phases[0].Slices, slice.Name)
				}
			}
			lists, gets := 0, 0
			server := interceptor.NewClient(build.Build(), interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					if lists++; tc.refused != nil {
						return tc.refused
					}
					return c.List(ctx, list, opts...)
				},
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
					gets++
					return c.Get(ctx, key, obj, opts...)
				},
			})
			s := reconciliationOf(server, server)
			s.stored = objectsets.Stored{Slices: map[string][]corev1alpha1.ObjectSetObject{}}
			s.prefetched = prefetchedSlices{}
			s.prefetchSlices(t.Context(), corev1alpha1.ScopeNamespaced, []corev1alpha1.GenericObjectSet{set})
			missing, err := s.readSlices(t.Context(), set)
			if err != nil || len(missing) > 0 {
				t.Fatalf("missing %v, error %v", missing, err)
			}
			if lists != tc.lists || gets != tc.gets {
				t.Errorf("%d lists and %d GETs, want %d and %d: %s", lists, gets, tc.lists, tc.gets, tc.reason)
			}
			for i, name := range set.Spec.Phases[0].Slices {
				if got, want := string(s.stored.Slices[name][0].Object.Raw), fmt.Sprintf(`{"kind":"ConfigMap","index":%d}`, i); got != want {
					t.Errorf("slice %s is %s, want %s", name, got, want)
				}
			}
		})
	}
}
