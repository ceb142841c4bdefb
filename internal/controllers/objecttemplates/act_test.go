package objecttemplates

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/engine/tracking"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/kube/mutationcache"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/phases/claims"
	simulated "lockstep.run/lockstep/test/memory"
	"lockstep.run/lockstep/test/require"
)

// recordingPool notes that steps would be performed, and does not perform them.
type recordingPool func()

func (p recordingPool) Run(context.Context, objects.OwnerKey, bool, int, func(int)) { p() }

// A template is marked while its reference is put on an object without it. If the template is being
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
		"an object of another owner":     {action: phases.Adopt, live: owned("other"), want: []string{"mark", "perform", "unmark"}},
		"drift":                          {action: phases.Correct, live: owned("template"), want: []string{"perform"}},
		"an object that is not there":    {action: phases.Create, want: []string{"perform"}},
		"the cache is behind":            {action: phases.Correct, live: &objects.Observed{}, behind: true, want: []string{"mark"}},
		"behind, and no object is taken": {action: phases.Correct, live: owned("template"), behind: true, want: []string{"perform"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scheme := runtime.NewScheme()
			require.NoError(t, corev1alpha1.AddToScheme(scheme))
			tmpl := newTemplate()
			tmpl.UID, tmpl.Finalizers = "template", []string{corev1alpha1.CachedFinalizer}
			server := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tmpl).Build()
			var did []string
			patched := interceptor.NewClient(server, interceptor.Funcs{
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
			known := &corev1alpha1.ObjectTemplate{}
			require.NoError(t, server.Get(t.Context(), client.ObjectKeyFromObject(tmpl), known))
			if tc.behind {
				live := known.DeepCopy()
				live.Finalizers = append(live.Finalizers, metav1.FinalizerOrphanDependents)
				require.NoError(t, errors.Join(server.Update(t.Context(), live), server.Delete(t.Context(), live)))
			}
			s := &reconciliation{
				Reconciler: &Reconciler{Client: patched, Options: Options{
					Fresh:  mutationcache.NewStore(),
					Target: &engine.Engine{Cluster: &cluster.Connection{}, Tracker: tracking.New(apinames.Default), Pool: recordingPool(func() { did = append(did, "perform") })},
				}},
				state: &state{rollout: engine.New(objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ObjectTemplate", Namespace: "team", Name: "t"}, UID: "template"})},
				view:  view{tmpl: known},
			}
			step := phases.Step{Background: true, Action: tc.action, Key: desired.Key, Live: tc.live, Desired: desired}
			s.rollout.Plan().Steps = []phases.Step{step}
			_, err := s.Target.Background(t.Context(), s.rollout, engine.Want{References: marks{s}})
			if apierrors.IsConflict(err) != (tc.behind && slices.Contains(tc.want, "mark")) {
				t.Error(err)
			}
			require.Equal(t, tc.want, did)
		})
	}
}

// Objects that a user creates under the reference of a template are removed. While a finalizer
// holds the first one, others that come and go leave neither strays nor objects to remove.
func TestStraysBesideOneThatIsHeld(t *testing.T) {
	t.Parallel()
	configMaps := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	owner := objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ObjectTemplate", Namespace: "team", Name: "t"}, UID: "template"}
	server, tracker := simulated.NewServer(apinames.Default, time.Now, simulated.Kind{GroupVersionKind: configMaps}), tracking.New(apinames.Default)
	here := server.Connect()
	here.Observe, here.Changed, here.KindChanged = tracker.Observe, tracker.Changed, tracker.KindChanged
	here.Send = func(_ context.Context, _ simulated.Request, do func() error) error { return do() }
	tracker.Wake = func(objects.OwnerKey) {}
	s := &reconciliation{
		Reconciler: &Reconciler{Now: time.Now, Options: Options{
			Target: &engine.Engine{Cluster: here, Tracker: tracker, Pool: engine.NewPool(1, 1)}, Claims: claims.NewTable(func(objects.Owner) {}),
			RestoreClaims: func(context.Context) error { return nil },
		}},
		state: &state{rollout: engine.NewSingle(owner), former: map[objects.Key]struct{}{}, last: &rendering{}},
		view:  view{tmpl: newTemplate()},
	}
	s.rollout.Claims = s.Claims
	key := func(name string) objects.Key { return objects.Key{Kind: "ConfigMap", Namespace: "team", Name: name} }
	desired, err := engine.NewDesired(apinames.Default, key("out"), "v1", map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "out", "namespace": "team"},
	})
	require.NoError(t, err)
	pass := func() {
		s.outcome = outcome{desired: desired}
		defer s.rollout.Start(time.Now, time.Second)()
		require.NoError(t, s.act(t.Context()))
		here.Sync(configMaps.GroupKind())
		for here.Deliver(configMaps.GroupKind()) {
		}
	}
	create := func(name string, finalizers ...string) {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{}}}
		owner.Put(u.Object["metadata"].(map[string]any))
		u.SetName(name)
		u.SetNamespace("team")
		u.SetLabels(map[string]string{corev1alpha1.CacheLabel: corev1alpha1.CacheLabelValue})
		u.SetFinalizers(finalizers)
		if _, err := server.Create(key(name), u, "user"); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			pass()
		}
	}
	pass()
	create("held", "team/hold")
	for i := range 100 {
		name := strconv.Itoa(i)
		if create(name); server.Get(key(name)) != nil {
			t.Fatalf("%s is left", name)
		}
	}
	if strays, removal := tracker.Strays(owner.OwnerKey), s.rollout.Loaded(engine.RemovalOf(owner)); len(strays) != 1 || len(s.former) > 0 || removal.Size() > 2 {
		t.Errorf("remembers strays %v, former objects %v, and %d to remove", strays, s.former, removal.Size())
	}
	if _, err := server.Edit(key("held"), "user", func(u *unstructured.Unstructured) { u.SetFinalizers(nil) }); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		pass()
	}
	if removal := s.rollout.Loaded(engine.RemovalOf(owner)); removal != nil {
		t.Errorf("all are deleted, and %d are still listed for removal", removal.Size())
	}
}

// The object in the place of a template's is deleted before its watch starts, so that no event
// follows.
func TestRivalIsGoneBeforeItIsWatched(t *testing.T) {
	t.Parallel()
	s := &state{}
	for i, step := range []struct {
		observed sources.State
		changed  bool
	}{
		{sources.State{}, false},
		{sources.State{Known: true}, true},
		{sources.State{Known: true}, false},
		{sources.State{Known: true, Version: "1"}, true},
		{sources.State{Known: true, Version: "1"}, false},
		{sources.State{Known: true}, true},
	} {
		require.Equal(t, step.changed, s.rivalChanged(step.observed), fmt.Sprintf("step %d: %+v is a change", i, step.observed))
	}
}
