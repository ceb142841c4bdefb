package objectdeployments

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/test/require"
)

// poolOf notes that steps would be performed, and does not perform them.
type poolOf func()

func (p poolOf) Run(context.Context, objects.OwnerKey, bool, int, func(int)) { p() }

// A lone set is marked while its reference is put on an object without it. If the set is being
// deleted by then, the object is not written: the garbage collector has already passed it by.
func TestTakingBackIsMarked(t *testing.T) {
	t.Parallel()
	owned := func(uid types.UID) *objects.Observed {
		return &objects.Observed{Owners: apinames.Default.References([]metav1.OwnerReference{{UID: uid, Controller: ptr.To(true)}}, nil)}
	}
	for name, tc := range map[string]struct {
		action phases.Action
		live   *objects.Observed
		behind bool
		want   []string
	}{
		"a reference that was lost":      {action: phases.Correct, live: &objects.Observed{}, want: []string{"mark", "perform", "unmark"}},
		"an object of others":            {action: phases.Adopt, live: owned("other"), want: []string{"mark", "perform", "unmark"}},
		"drift":                          {action: phases.Correct, live: owned("shop-1"), want: []string{"perform"}},
		"an object that is not there":    {action: phases.Create, want: []string{"perform"}},
		"a deletion":                     {action: phases.Delete, live: &objects.Observed{}, want: []string{"perform"}},
		"the cache of sets is behind":    {action: phases.Correct, live: &objects.Observed{}, behind: true, want: []string{"mark"}},
		"behind, and no object is taken": {action: phases.Correct, live: owned("shop-1"), behind: true, want: []string{"perform"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var did []string
			set := setOf("shop-1", false)
			set.OwnerReferences = nil
			server := serverWith(t, set)
			c := interceptor.NewClient(server, interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
					data, err := patch.Data(obj)
					switch {
					case err != nil:
						return err
					case strings.Contains(string(data), corev1alpha1.OrphanedTakingBack):
						did = append(did, "mark")
					default:
						did = append(did, "unmark")
					}
					return c.Patch(ctx, obj, patch, opts...)
				},
			})
			s := reconciliationOf(c, server)
			s.deployment, s.key = nil, objects.OwnerKey{Kind: "ObjectSet", Namespace: "shop", Name: "shop-1"}
			s.state = s.remember(s.key, set.UID, s.Here, &claimants{})
			s.Target.Pool = poolOf(func() { did = append(did, "perform") })
			known := &corev1alpha1.ObjectSet{}
			require.NoError(t, server.Get(t.Context(), client.ObjectKeyFromObject(set), known))
			s.sets = []corev1alpha1.GenericObjectSet{known}
			if tc.behind {
				live := known.DeepCopy()
				live.Finalizers = []string{metav1.FinalizerOrphanDependents}
				require.NoError(t, errors.Join(server.Update(t.Context(), live), server.Delete(t.Context(), live)))
			}
			step := phases.Step{Background: true, Action: tc.action, Key: key("Config", "a"), Live: tc.live, Desired: &objects.Desired{}}
			if tc.action == phases.Delete {
				step.Desired = nil
			}
			s.rollout.Plan().Steps = []phases.Step{step}
			_, err := s.Target.Background(t.Context(), s.rollout, s.kept())
			if apierrors.IsConflict(err) != (tc.behind && slices.Contains(tc.want, "mark")) {
				t.Error(err)
			}
			require.Equal(t, tc.want, did)
		})
	}
}

// A deployment that was created for a Package after the Package was orphaned is deleted in the
// background, and does not adopt anything before that.
func TestNothingIsAdoptedForAPackageThatGoes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		pkg  *corev1alpha1.Package
		want bool
	}{
		"it stays":          {pkg: &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{UID: "pkg"}}, want: true},
		"it is another":     {pkg: &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{UID: "another"}}},
		"it does not exist": {},
		"it is terminating": {pkg: &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{
			UID: "pkg", DeletionTimestamp: &metav1.Time{Time: time.Unix(1, 0)}, Finalizers: []string{corev1alpha1.MetricsFinalizer},
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := serverWith(t, setOf("shop-1", false))
			reader := interceptor.NewClient(server, interceptor.Funcs{
				Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
					if tc.pkg == nil {
						return apierrors.NewNotFound(corev1alpha1.Resource("packages"), key.Name)
					}
					obj.(*metav1.PartialObjectMetadata).ObjectMeta = tc.pkg.ObjectMeta
					return nil
				},
			})
			s := reconciliationOf(server, reader)
			s.deployment.SetOwnerReferences([]metav1.OwnerReference{{
				APIVersion: corev1alpha1.GroupVersion.String(), Kind: "Package", Name: "shop", UID: "pkg", Controller: ptr.To(true),
			}})
			performed := false
			s.Target.Pool = poolOf(func() { performed = true })
			step := phases.Step{Background: true, Action: phases.Adopt, Key: key("Config", "a"), Live: &objects.Observed{}, Desired: &objects.Desired{}}
			s.rollout.Plan().Steps = []phases.Step{step}
			err := s.performBackground(t.Context())
			if errors.Is(err, errPackageGoes) == tc.want || performed != tc.want {
				t.Errorf("adopted: %t, %v", performed, err)
			}
			if !tc.want && s.After != packageRetry {
				t.Errorf("the API server is asked again after %s", s.After)
			}
		})
	}
}
