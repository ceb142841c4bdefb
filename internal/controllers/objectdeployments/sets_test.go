package objectdeployments

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/engine/tracking"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/test/require"
)

// TestRevisionIsMadeOnce creates a revision again without knowing that it exists: its name shows
// whether it is the same or another one.
func TestRevisionIsMadeOnce(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		// change turns the existing set into another one.
		change func(*corev1alpha1.ObjectSet)
		want   int
	}{
		"the answer was lost":              {"it is the wanted one", func(*corev1alpha1.ObjectSet) {}, 1},
		"another deployment of the name":   {"an earlier deployment made it", func(s *corev1alpha1.ObjectSet) { s.OwnerReferences[0].UID = "former" }, 2},
		"another revision":                 {"the template went back", func(s *corev1alpha1.ObjectSet) { s.Spec.Revision = 7 }, 2},
		"another template of the same sum": {"hashes can collide", func(s *corev1alpha1.ObjectSet) { s.Spec.Phases[0].Name = "other" }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := fake.NewClientBuilder().WithScheme(newScheme(t)).Build()
			lost := errors.New("the connection broke")
			failing := true
			behind := interceptor.NewClient(server, interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
					if err := c.Create(ctx, obj, opts...); err != nil || !failing {
						return err
					}
					return lost
				},
				// The cache shows no set yet.
				List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return nil },
			})
			s := reconciliationOf(behind, server)
			if err := s.createSet(t.Context(), 1); !errors.Is(err, lost) {
				t.Fatalf("the first attempt: %v", err)
			}
			failing = false
			var sets corev1alpha1.ObjectSetList
			require.NoError(t, server.List(t.Context(), &sets))
			tc.change(&sets.Items[0])
			require.NoError(t, server.Update(t.Context(), &sets.Items[0]))
			require.NoError(t, s.createSet(t.Context(), 1))
			require.NoError(t, server.List(t.Context(), &sets))
			if len(sets.Items) != tc.want {
				t.Errorf("%s: %d sets, want %d", tc.reason, len(sets.Items), tc.want)
			}
			made, hash := s.sets[0], s.deploymentStatus().TemplateHash
			name := "shop-" + hash
			if tc.want > 1 {
				name += "-1"
			}
			if made.GetName() != name || made.GetAnnotations()[corev1alpha1.HashAnnotation] != hash {
				t.Errorf("%s: the set is %s with the hash %q, want %s with %q", tc.reason,
					made.GetName(), made.GetAnnotations()[corev1alpha1.HashAnnotation], name, hash)
			}
			if len(s.sets) != 1 {
				t.Errorf("%s: the reconcile knows %d sets, want the new one", tc.reason, len(s.sets))
			}
		})
	}
}

// reconciliationOf returns a reconcile of a deployment with one phase.
func reconciliationOf(c client.Client, reader client.Reader) *reconciliation {
	dep := &corev1alpha1.ObjectDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shop", UID: "deployment"}}
	dep.Spec.Template.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{{Name: "one"}}
	key := objects.OwnerKey{Kind: "ObjectDeployment", Namespace: "shop", Name: "shop"}
	home := Home{Client: c, Reader: reader, Events: events.NewFakeRecorder(10), Now: time.Now}
	r := New(home, &engine.Engine{Cluster: &cluster.Connection{}, Tracker: tracking.New(apinames.Default)}, func(objects.OwnerKey) {})
	return &reconciliation{Reconciler: r, state: r.remember(key, dep.UID, r.Here, &claimants{}), key: key, scope: corev1alpha1.ScopeNamespaced, deployment: dep}
}

// TestClaimOfAnEarlierProcess: a claim by the creation of a set is used when the claims are
// restored at a start. Later the claims are in memory, and a mark that a user writes on a set of
// their own does not claim anything.
func TestClaimOfAnEarlierProcess(t *testing.T) {
	t.Parallel()
	for _, restored := range []bool{false, true} {
		s := reconciliationOf(nil, nil)
		s.restored = restored
		set, err := s.newSet(1)
		require.NoError(t, err)
		set.SetUID("set")
		set.GetAnnotations()[corev1alpha1.ClaimedAnnotation] = "true"
		s.sets = []corev1alpha1.GenericObjectSet{set}
		require.NoError(t, s.loadSets(t.Context()))
		if rev := s.revisionOf(set); rev.Claimed() == restored {
			t.Errorf("restored: %t: the set counts as claimed: %t", restored, rev.Claimed())
		}
	}
}

// TestAnnotationsOfASet: a set does not inherit a claim from an annotation of the deployment.
func TestAnnotationsOfASet(t *testing.T) {
	t.Parallel()
	s := reconciliationOf(nil, nil)
	s.deployment.SetAnnotations(map[string]string{corev1alpha1.ClaimedAnnotation: "true", "example.com/kept": "yes"})
	set, err := s.newSet(1)
	require.NoError(t, err)
	if _, claimed := set.GetAnnotations()[corev1alpha1.ClaimedAnnotation]; claimed || set.GetAnnotations()["example.com/kept"] != "yes" {
		t.Errorf("the set has the annotations %v", set.GetAnnotations())
	}
}
