package objectdeployments

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/engine/tracking"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/test/require"
)

// TestOneOwnerDoesNotBlockOthers: an owner whose loading fails or panics at the start
// delays the others for restoreGrace only. Its claim is restored once it can be
// loaded, unless its objects are claimed by then (invariant 10).
func TestOneOwnerDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	object := objects.Key{Kind: "ConfigMap", Namespace: "shop", Name: "c"}
	for name, tc := range map[string]struct {
		fail func() error
		// taken means that another owner claims the object meanwhile.
		taken bool
	}{
		"an error": {fail: func() error { return errors.New("cannot be decrypted") }},
		"a panic":  {fail: func() error { panic("no") }},
		"taken":    {fail: func() error { return errors.New("cannot be decrypted") }, taken: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := func(name string) *corev1alpha1.ObjectSet {
				s := &corev1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)}}
				conditions.Set(&s.Status.Conditions, 0, corev1alpha1.ConditionClaimed, true, corev1alpha1.ReasonClaimed, "")
				return s
			}
			broken, fine := set("broken"), set("fine")
			broken.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{{Name: "one", Slices: []string{"slice"}}}
			fine.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{{
				Name: "one", Objects: stored(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine"}}`),
			}}
			slice := &corev1alpha1.ObjectSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "slice"}}
			slice.Objects = stored(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}`)
			index := func(obj client.Object) []string {
				return []string{objectsets.OwnerOf(obj.(corev1alpha1.GenericObjectSet)).String()}
			}
			fails := true
			server := interceptor.NewClient(fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(broken, fine, slice).
				WithIndex(&corev1alpha1.ObjectSet{}, ownerIndex, index).WithIndex(&corev1alpha1.ClusterObjectSet{}, ownerIndex, index).Build(),
				interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
					if _, isSlice := obj.(*corev1alpha1.ObjectSlice); isSlice && fails {
						return tc.fail()
					}
					return c.Get(ctx, key, obj, opts...)
				}})
			answers := maps.Clone(servesThings)
			answers["/api/v1"] = `{"kind": "APIResourceList", "groupVersion": "v1", "resources": [
				{"name": "configmaps", "kind": "ConfigMap", "namespaced": true}, {"name": "namespaces", "kind": "Namespace", "namespaced": false}]}`
			now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
			home := Home{Client: server, Reader: server, Now: func() time.Time { return now }}
			r := New(home, &engine.Engine{Cluster: liveOf(t, answers), Tracker: tracking.New(apinames.Default)}, func(objects.OwnerKey) {})
			if err := r.RestoreClaims(t.Context()); err == nil {
				t.Fatal("the claims are restored at once, though an owner could not be read")
			}
			now = now.Add(restoreGrace)
			if err := r.RestoreClaims(t.Context()); err != nil {
				t.Fatalf("all wait for one owner: %v", err)
			}
			if holder, _ := r.ClaimsOf("", "").Holder(objects.Key{Kind: "ConfigMap", Namespace: "shop", Name: "mine"}); holder.Name != "fine" {
				t.Errorf("the claim of the other is not restored: %v", holder)
			}
			other := objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ObjectSet", Namespace: "shop", Name: "other"}, UID: "other"}
			if tc.taken {
				require.NoError(t, r.ClaimsOf("", "").Claim(other, []objects.Key{object}))
			}
			fails = false
			s, err := r.gather(t.Context(), objects.OwnerKey{Kind: "ObjectSet", Namespace: "shop", Name: "broken"})
			require.NoError(t, err)
			require.NoError(t, s.loadSets(t.Context()))
			holder, _ := r.ClaimsOf("", "").Holder(object)
			if rev := s.rollout.Loaded("broken"); rev.Claimed() == tc.taken || (holder == other) != tc.taken {
				t.Errorf("claimed: %t, and %v holds the object", rev.Claimed(), holder)
			}
		})
	}
}
