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

// TestOrphanedBehindTheCache: a deployment whose sets the garbage collector has orphaned
// was deleted with its objects kept, also where no cache ever showed the finalizer of that.
func TestOrphanedBehindTheCache(t *testing.T) {
	t.Parallel()
	for name, orphaned := range map[string]bool{"with references": false, "without references": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := setOf("shop-1", true)
			set.Annotations = map[string]string{corev1alpha1.ObjectDeploymentUIDAnnotation: "deployment"}
			if orphaned {
				set.OwnerReferences = nil
			}
			var first string
			stop := errors.New("stop")
			s := reconciliationOf(interceptor.NewClient(fake.NewClientBuilder().WithScheme(newScheme(t)).Build(), interceptor.Funcs{
				Patch: func(_ context.Context, _ client.WithWatch, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
					data, err := patch.Data(obj)
					first = string(data)
					return errors.Join(stop, err)
				},
				Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return stop },
			}), nil)
			s.deployment.SetResourceVersion("1")
			s.sets = []corev1alpha1.GenericObjectSet{set}
			if err := s.teardown(t.Context()); !errors.Is(err, stop) {
				t.Fatal(err)
			}
			if strings.Contains(first, corev1alpha1.OrphanedAnnotation) != orphaned {
				t.Errorf("the first patch is %s", first)
			}
		})
	}
}
