package objectdeployments

import (
	"context"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/require"
)

// TestWhoseDeploymentIsGone: sets are deleted if the API server reports that their deployment no
// longer exists, or that it no longer serves deployments, but not if it does not answer for them.
func TestWhoseDeploymentIsGone(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer error
		// known means that the served kinds are known, and that deployments are not among them.
		known   bool
		deleted bool
	}{
		"there is no such deployment": {apierrors.NewNotFound(schema.GroupResource{Group: corev1alpha1.GroupVersion.Group, Resource: "objectdeployments"}, "shop"), false, true},
		"the API does not answer":     {noPage("GET"), false, false},
		"the CRD was deleted":         {noPage("GET"), true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := setOf("shop-1", false)
			server := serverWith(t, set)
			s := reconciliationOf(server, interceptor.NewClient(server, interceptor.Funcs{
				Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
					return tc.answer
				},
			}))
			s.deployment = nil
			if s.Target.Cluster = unstarted(t, "http://unused", func(schema.GroupKind) {}); tc.known {
				s.Target.Cluster = liveOf(t, servesThings)
			}
			err := s.dropFormer(t.Context(), []corev1alpha1.GenericObjectSet{set})
			if (err == nil) != tc.deleted {
				t.Errorf("error %v", err)
			}
			var sets corev1alpha1.ObjectSetList
			require.NoError(t, server.List(t.Context(), &sets))
			if (len(sets.Items) == 0) != tc.deleted {
				t.Errorf("%d sets are left", len(sets.Items))
			}
		})
	}
}

// TestLetGoOfWhatIsGone: that the API is not served for the moment does not end the
// work on an object that is still there.
func TestLetGoOfWhatIsGone(t *testing.T) {
	t.Parallel()
	for name, finalized := range map[string]func(context.Context, *reconciliation, *corev1alpha1.ObjectSet) error{
		"deletion": func(ctx context.Context, s *reconciliation, set *corev1alpha1.ObjectSet) error {
			return s.dropSet(ctx, set)
		},
		"finalizers": func(ctx context.Context, s *reconciliation, set *corev1alpha1.ObjectSet) error {
			return s.removeFinalizers(ctx, set)
		},
		"finalizers of a deleted set": func(ctx context.Context, s *reconciliation, set *corev1alpha1.ObjectSet) error {
			return s.stripFinalizers(ctx, s.metadataOf(set))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := setOf("shop-1", false)
			set.Finalizers = []string{corev1alpha1.CachedFinalizer}
			server := serverWith(t, set)
			s := reconciliationOf(interceptor.NewClient(server, interceptor.Funcs{
				Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
					return noPage("DELETE")
				},
				Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
					return noPage("PATCH")
				},
			}), server)
			if err := finalized(t.Context(), s, set); err == nil {
				t.Error("the API is not served, and the set is treated as deleted")
			}
		})
	}
}

// noPage is the answer of an API server, or of a proxy before it, that does not serve an API.
func noPage(verb string) error {
	return apierrors.NewGenericServerResponse(http.StatusNotFound, verb, schema.GroupResource{}, "shop", "404 page not found", 0, true)
}

func serverWith(t *testing.T, sets ...client.Object) client.WithWatch {
	t.Helper()
	return fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(sets...).Build()
}
