package objectdeployments

import (
	"context"
	"errors"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// TestOrphanedBehindTheCache: if the garbage collector has orphaned the sets of a deployment, the
// deployment was deleted with its objects kept. This holds even if no cache ever showed the
// finalizer for that, and if the cache of sets is behind.
func TestOrphanedBehindTheCache(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ cached, live, reads, late bool }{
		"with references":                         {reads: true},
		"without references":                      {cached: true, live: true},
		"without references, not shown yet":       {live: true, reads: true},
		"along with a set that was created later": {live: true, reads: true, late: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			orphaned := tc.live
			set := setOf("shop-1", true)
			set.Annotations = map[string]string{corev1alpha1.ObjectDeploymentUIDAnnotation: "deployment"}
			live := set.DeepCopy()
			if tc.cached {
				set.OwnerReferences = nil
			}
			if tc.live {
				live.OwnerReferences = nil
			}
			read := false
			late := setOf("shop-2", true)
			late.Annotations = set.Annotations
			reader := interceptor.NewClient(serverWith(t, live, late), interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
					read = true
					return c.Get(ctx, key, obj, opts...)
				},
			})
			var first string
			stop := errors.New("stop")
			s := reconciliationOf(interceptor.NewClient(fake.NewClientBuilder().WithScheme(newScheme(t)).Build(), interceptor.Funcs{
				Patch: func(_ context.Context, _ client.WithWatch, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
					data, err := patch.Data(obj)
					first = string(data)
					return errors.Join(stop, err)
				},
				Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return stop },
			}), reader)
			s.deployment.SetResourceVersion("1")
			s.sets = []corev1alpha1.GenericObjectSet{set}
			if tc.late {
				s.sets = append(s.sets, late)
			}
			err := s.findOrphaned(t.Context())
			if err == nil {
				err = s.tearDown(t.Context())
			}
			if !errors.Is(err, stop) {
				t.Fatal(err)
			}
			if strings.Contains(first, corev1alpha1.OrphanedAnnotation) != orphaned {
				t.Errorf("the first patch is %s", first)
			}
			if read != tc.reads {
				t.Errorf("the API server was asked: %t", read)
			}
		})
	}
}
