package objecttemplates

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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
	"lockstep.run/lockstep/internal/apinames"
	"lockstep.run/lockstep/internal/cluster"
	simulated "lockstep.run/lockstep/internal/cluster/memory"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/kube/mutationcache"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/phases/claims"
)

// recordingPool notes that steps are performed, and performs none.
type recordingPool func()

func (p recordingPool) Run(context.Context, objects.OwnerKey, bool, int, func(int)) { p() }

// A template that renders one name after another, and whose object is never written, remembers and claims the last one alone,
// and one that was written until it is gone.
func TestRenamedOverAndOver(t *testing.T) {
	t.Parallel()
	server := simulated.NewServer(apinames.Default, time.Now, simulated.Kind{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ConfigMap")}).Connect()
	s := &reconciliation{
		Reconciler: &Reconciler{Options: Options{
			Target: &engine.Engine{Cluster: server, Tracker: engine.NewTracker(apinames.Default)}, Claims: claims.NewTable(func(objects.Owner) {}),
		}},
		state: &state{
			rollout: engine.NewSingle(objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ObjectTemplate", Namespace: "team", Name: "t"}, UID: "template"}),
			former:  map[objects.Key]struct{}{},
			last:    &rendering{},
		},
		view: view{tmpl: newTemplate()},
	}
	key := func(i int) objects.Key {
		return objects.Key{Kind: "ConfigMap", Namespace: "team", Name: strconv.Itoa(i)}
	}
	for i := range 1000 {
		s.desired = &objects.Desired{Key: key(i), Version: "v1", Content: objects.Digest{1}}
		s.put()
		if !s.claim() {
			t.Fatalf("%s is refused: %v", key(i), s.blocking)
		}
		if i == 0 {
			s.Target.Assume(s.rollout, s.rollout.Loaded(s.rollout.Owner.UID), key(0), &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"uid": "u"}}})
		}
	}
	if want := map[objects.Key]struct{}{key(0): {}}; !maps.Equal(s.former, want) {
		t.Errorf("remembers %d objects, want the one that was written", len(s.former))
	}
	for i, want := range map[int]bool{0: true, 1: false, 998: false, 999: true} {
		if _, held := s.Claims.Holder(key(i)); held != want {
			t.Errorf("the claim of %s is held: %t", key(i), held)
		}
	}
}

// A template is marked while its reference is put on an object without it, and nothing is written where it is being deleted by
// then: the garbage collector has passed the object by.
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
		"a reference that was lost":    {action: phases.Correct, live: &objects.Observed{}, want: []string{"mark", "perform", "unmark"}},
		"an object of another owner":   {action: phases.Adopt, live: owned("other"), want: []string{"mark", "perform", "unmark"}},
		"drift":                        {action: phases.Correct, live: owned("template"), want: []string{"perform"}},
		"an object that is not there":  {action: phases.Create, want: []string{"perform"}},
		"the cache is behind":          {action: phases.Correct, live: &objects.Observed{}, behind: true, want: []string{"mark"}},
		"behind, and nothing is taken": {action: phases.Correct, live: owned("template"), behind: true, want: []string{"perform"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scheme := runtime.NewScheme()
			if err := corev1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
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
			if err := server.Get(t.Context(), client.ObjectKeyFromObject(tmpl), known); err != nil {
				t.Fatal(err)
			}
			if tc.behind {
				live := known.DeepCopy()
				live.Finalizers = append(live.Finalizers, metav1.FinalizerOrphanDependents)
				if err := errors.Join(server.Update(t.Context(), live), server.Delete(t.Context(), live)); err != nil {
					t.Fatal(err)
				}
			}
			s := &reconciliation{
				Reconciler: &Reconciler{Client: patched, Options: Options{
					Fresh:  mutationcache.NewStore(),
					Target: &engine.Engine{Cluster: &cluster.Connection{}, Tracker: engine.NewTracker(apinames.Default), Pool: recordingPool(func() { did = append(did, "perform") })},
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
			if diff := cmp.Diff(tc.want, did); diff != "" {
				t.Error(diff)
			}
		})
	}
}
