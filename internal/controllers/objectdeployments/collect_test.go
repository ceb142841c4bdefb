package objectdeployments

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/require"
)

// TestCollectionKeepsWhatIsNeeded draws histories: a Secret is never deleted while the template or
// a revision that owns objects names it (invariants 2 and 4), and in the end no other one is left
// (invariant 8).
func TestCollectionKeepsWhatIsNeeded(t *testing.T) {
	t.Parallel()
	scheme := newScheme(t)
	rapid.Check(t, func(t *rapid.T) {
		var all []client.Object
		var secrets []string
		for i := range rapid.IntRange(0, 6).Draw(t, "secrets") {
			name := fmt.Sprintf("shop-%d", i)
			secrets = append(secrets, name)
			age := rapid.SampledFrom([]time.Duration{time.Second, sliceGrace - 1, sliceGrace, time.Hour}).Draw(t, "age")
			all = append(all, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(noon.Add(-age)),
				Labels:     map[string]string{corev1alpha1.SliceOwnerLabel: "shop", corev1alpha1.SliceOwnerKindLabel: "ObjectDeployment"},
				Finalizers: []string{corev1alpha1.CachedFinalizer},
				OwnerReferences: []metav1.OwnerReference{{
					APIVersion: corev1alpha1.GroupVersion.String(), Kind: "ObjectDeployment", Name: "shop", UID: "deployment", Controller: ptr.To(true),
				}},
			}})
		}
		// A missing Secret can be named, too.
		someOf := rapid.SliceOfN(rapid.SampledFrom(append(secrets, "lost")), 0, 3)
		needed := map[string]bool{}
		template := someOf.Draw(t, "template")
		for i := range rapid.IntRange(0, 4).Draw(t, "sets") {
			archived, names := rapid.Bool().Draw(t, "archived"), someOf.Draw(t, "names")
			all = append(all, setOf(fmt.Sprintf("shop-set-%d", i), archived, names...))
			for _, name := range names {
				needed[name] = needed[name] || !archived
			}
		}
		for _, name := range template {
			needed[name] = true
		}
		server := fake.NewClientBuilder().WithScheme(scheme).
			WithIndex(&corev1alpha1.ObjectSet{}, ownerIndex, func(client.Object) []string { return []string{"ObjectDeployment shop/shop"} }).
			WithObjects(all...).Build()
		now := noon
		for range 2 {
			s := reconciliationOf(server, server)
			s.Now = func() time.Time { return now }
			s.deployment.SetAnnotations(map[string]string{corev1alpha1.SecretSlicedAnnotation: "true"})
			s.deployment.ObjectDeploymentSpec().Template.Spec.Phases[0].SecretSlices = template
			require.NoError(t, s.collectSlices(t.Context()))
			left := &corev1.SecretList{}
			require.NoError(t, server.List(t.Context(), left))
			there := map[string]bool{}
			for _, secret := range left.Items {
				there[secret.Name] = true
				if !needed[secret.Name] && s.slicesDue.IsZero() {
					t.Fatalf("%s is left, and no reconcile looks at it again", secret.Name)
				}
			}
			for _, name := range secrets {
				if needed[name] && !there[name] {
					t.Fatalf("%s was deleted, although it is needed", name)
				}
			}
			if s.slicesDue.IsZero() {
				return
			}
			now = s.slicesDue
		}
		t.Fatal("young Secrets are kept for longer than the grace")
	})
}
