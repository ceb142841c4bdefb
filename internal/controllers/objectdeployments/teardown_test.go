package objectdeployments

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/test/require"
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
			reader := interceptor.NewClient(newServer().WithObjects(live, late).Build(), interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
					read = true
					return c.Get(ctx, key, obj, opts...)
				},
			})
			var first string
			stop := errors.New("stop")
			s := reconciliationOf(interceptor.NewClient(newServer().Build(), interceptor.Funcs{
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
			require.Equal(t, tc.reads, read, "the API server was asked")
		})
	}
}

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
			server := newServer().WithObjects(set).Build()
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
			s.Target.Pool = poolOf(func() { did = append(did, "perform") })
			known := &corev1alpha1.ObjectSet{}
			require.NoError(t, server.Get(t.Context(), client.ObjectKeyFromObject(set), known))
			loneSet(s, known)
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

// A deployment of another cluster can have objects there before it has a set, because a backup
// restored it. It is marked before the first set is created, under the state that shows that it
// stays, and only until then.
func TestFirstSetIsMarked(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		remote, another, deleted bool
		want                     []string
	}{
		"in another cluster":          {remote: true, want: []string{"mark", "create", "unmark"}},
		"in another cluster, deleted": {remote: true, deleted: true, want: []string{"mark"}},
		"a later one":                 {remote: true, another: true, want: []string{"create"}},
		"in the same cluster":         {want: []string{"create"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dep := &corev1alpha1.ObjectDeployment{ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "shop", UID: "deployment", Finalizers: []string{corev1alpha1.CachedFinalizer},
			}}
			if tc.another {
				metav1.SetMetaDataAnnotation(&dep.ObjectMeta, corev1alpha1.TargetClusterAnnotation, "one")
			}
			server := newServer().WithObjects(dep).Build()
			known := &corev1alpha1.ObjectDeployment{}
			require.NoError(t, server.Get(t.Context(), client.ObjectKeyFromObject(dep), known))
			if tc.deleted {
				require.NoError(t, server.Delete(t.Context(), dep))
			}
			var did []string
			c := interceptor.NewClient(server, interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
					did = append(did, "create")
					return c.Create(ctx, obj, opts...)
				},
				Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
					did = append(did, "unmark")
					if objectsets.Orphaned(obj) {
						did[len(did)-1] = "mark"
					}
					return c.Patch(ctx, obj, patch, opts...)
				},
			})
			s := reconciliationOf(c, server)
			s.deployment, s.Target.ID = known, "one"
			if tc.remote {
				s.ref = &corev1alpha1.TargetReference{}
			}
			if tc.another {
				s.sets = []corev1alpha1.GenericObjectSet{setOf("shop-1", false)}
			}
			if err := s.createSet(t.Context(), 2); apierrors.IsConflict(err) != tc.deleted {
				t.Error(err)
			}
			require.Equal(t, tc.want, did)
		})
	}
}

// A mark that an earlier pass has left is taken off, also while its owner is deleted: with the mark,
// the objects would be kept.
func TestTakeBackOfADeletedOwnerEnds(t *testing.T) {
	t.Parallel()
	set := setOf("shop-1", false)
	set.OwnerReferences = nil
	set.Finalizers = []string{corev1alpha1.CachedFinalizer}
	metav1.SetMetaDataAnnotation(&set.ObjectMeta, corev1alpha1.OrphanedAnnotation, corev1alpha1.OrphanedTakingBack)
	server := newServer().WithObjects(set).Build()
	require.NoError(t, server.Delete(t.Context(), set))
	known := &corev1alpha1.ObjectSet{}
	require.NoError(t, server.Get(t.Context(), client.ObjectKeyFromObject(set), known))

	s := reconciliationOf(server, server)
	loneSet(s, known)
	require.NoError(t, s.endTakeBacks(t.Context()))
	require.NoError(t, server.Get(t.Context(), client.ObjectKeyFromObject(set), known))
	if mark, marked := known.Annotations[corev1alpha1.OrphanedAnnotation]; marked {
		t.Errorf("the mark %q is left", mark)
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
			server := newServer().WithObjects(setOf("shop-1", false)).Build()
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
			server := newServer().WithObjects(set).Build()
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
			require.Equal(t, tc.deleted, err == nil, fmt.Sprintf("error %v", err))
			var sets corev1alpha1.ObjectSetList
			require.NoError(t, server.List(t.Context(), &sets))
			require.Equal(t, tc.deleted, (len(sets.Items) == 0), fmt.Sprintf("%d sets are left", len(sets.Items)))
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
			server := newServer().WithObjects(set).Build()
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

// TestLetPhaseGo: in a namespace that is being deleted an agent is awaited for a while;
// then the engine's finalizer is removed, and no other.
func TestLetPhaseGo(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		namespaceGoes bool
		waited        time.Duration
		finalizers    []string
		want          []string
		after         time.Duration
	}{
		"the namespace stays":   {false, time.Hour, []string{corev1alpha1.CachedFinalizer}, []string{corev1alpha1.CachedFinalizer}, namespaceLook},
		"not for long":          {true, 0, []string{corev1alpha1.CachedFinalizer}, []string{corev1alpha1.CachedFinalizer}, agentPatience},
		"long enough":           {true, agentPatience, []string{corev1alpha1.CachedFinalizer}, nil, 0},
		"a finalizer of others": {true, agentPatience, []string{"example.com/mine", corev1alpha1.CachedFinalizer}, []string{"example.com/mine"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
			if tc.namespaceGoes {
				namespace.DeletionTimestamp, namespace.Finalizers = ptr.To(metav1.NewTime(noon)), []string{"kubernetes"}
			}
			phase := &corev1alpha1.ObjectSetPhase{ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "shop-1-remote", UID: "phase", Finalizers: tc.finalizers, DeletionTimestamp: ptr.To(metav1.NewTime(noon)),
			}}
			s := reconciliationOf(nil, nil)
			c := newServer().WithObjects(namespace, phase).Build()
			s.Client, s.Reader, s.Now = c, c, func() time.Time { return noon.Add(tc.waited) }
			require.NoError(t, s.letPhaseGo(t.Context(), objects.Key{Group: corev1alpha1.GroupVersion.Group, Kind: "ObjectSetPhase", Namespace: "shop", Name: phase.Name}))
			err := c.Get(t.Context(), client.ObjectKeyFromObject(phase), phase)
			if apierrors.IsNotFound(err) {
				phase.Finalizers, err = nil, nil
			}
			if diff := cmp.Diff(tc.want, phase.Finalizers); err != nil || diff != "" || s.After != tc.after {
				t.Errorf("%v, again after %s, want %s: %s", err, s.After, tc.after, diff)
			}
		})
	}
}
