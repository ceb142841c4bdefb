package objectdeployments

import (
	"context"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/engine/tracking"
	"lockstep.run/lockstep/internal/inputs/targets"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/test/require"
)

// oneTarget is a target in a state.
type oneTarget struct {
	session *Target
	state   targets.State
	ref     targets.Ref
}

func (o *oneTarget) Use(_ string, ref targets.Ref, _ func()) { o.ref = ref }
func (*oneTarget) Release(string)                            {}
func (o *oneTarget) Find(targets.Ref) (*Target, targets.State) {
	return o.session, o.state
}

// TestTargets: if a target is away, its owners report it and do nothing. A deleted owner waits,
// unless it wrote nothing there, or its user releases it: then the target is not contacted.
func TestTargets(t *testing.T) {
	t.Parallel()
	const recorded, abandoned = corev1alpha1.TargetClusterAnnotation, corev1alpha1.AbandonTargetAnnotation
	away := targets.State{Reason: corev1alpha1.ReasonTargetUnreachable, Message: "No answer."}
	refused := targets.State{Reason: corev1alpha1.ReasonKubeconfigRefused, Message: "exec"}
	claimed := func() *corev1alpha1.ObjectSet {
		set := setOf("shop-1", false)
		set.Annotations = map[string]string{corev1alpha1.ClaimedAnnotation: "true"}
		return set
	}
	former := func() *corev1alpha1.ObjectSet {
		set := setOf("shop-1", false)
		set.OwnerReferences[0].UID = "former"
		return set
	}
	after := func(previous string) *corev1alpha1.ObjectSet {
		set := setOf("shop-1", false)
		set.Spec.Previous = []corev1alpha1.PreviousRevisionReference{{Name: previous}}
		return set
	}
	for name, tc := range map[string]struct {
		state       targets.State
		session     types.UID // the cluster of the session; empty for none
		annotations map[string]string
		deleted     bool
		moved       bool
		// set is a revision, which might have claimed its objects.
		set *corev1alpha1.ObjectSet
		// reported is the revision in the status.
		reported int64
		// gone means that the owner is released; otherwise it has a reason, and a message with
		// text.
		gone         bool
		reason, text string
		stalled      bool
	}{
		"away":                   {state: away, reason: corev1alpha1.ReasonTargetUnreachable, text: "No answer."},
		"refused":                {state: targets.State{Reason: corev1alpha1.ReasonKubeconfigRefused, Message: "exec"}, reason: corev1alpha1.ReasonKubeconfigRefused, text: "exec", stalled: true},
		"another cluster":        {state: targets.State{Ready: true}, session: "two", annotations: map[string]string{recorded: "one"}, reason: corev1alpha1.ReasonOtherCluster, text: recorded, stalled: true},
		"deleted while away":     {state: away, annotations: map[string]string{recorded: "one"}, reported: 1, deleted: true, reason: corev1alpha1.ReasonTargetUnreachable, text: abandoned},
		"abandoned":              {state: away, annotations: map[string]string{recorded: "one", abandoned: "true"}, deleted: true, gone: true},
		"without a revision":     {state: away, annotations: map[string]string{recorded: "one"}, deleted: true, gone: true},
		"nothing was written":    {state: away, deleted: true, gone: true},
		"abandoned, refused":     {state: refused, annotations: map[string]string{recorded: "one", abandoned: "true"}, set: claimed(), deleted: true, gone: true},
		"abandoned, connected":   {state: targets.State{Ready: true}, session: "one", annotations: map[string]string{recorded: "one", abandoned: "true"}, set: claimed(), deleted: true, gone: true},
		"abandoned, no Secret":   {state: targets.State{Reason: corev1alpha1.ReasonKubeconfigMissing}, session: "one", annotations: map[string]string{recorded: "one", abandoned: "true"}, set: claimed(), deleted: true, gone: true},
		"no object was claimed":  {state: away, annotations: map[string]string{recorded: "one"}, set: setOf("shop-1", false), deleted: true, gone: true},
		"unclaimed, connected":   {state: targets.State{Ready: true}, session: "one", annotations: map[string]string{recorded: "one"}, set: setOf("shop-1", false), deleted: true, gone: true},
		"unclaimed, refused":     {state: refused, annotations: map[string]string{recorded: "one"}, set: setOf("shop-1", false), deleted: true, gone: true},
		"unclaimed, another":     {state: targets.State{Ready: true}, session: "two", annotations: map[string]string{recorded: "one"}, set: setOf("shop-1", false), deleted: true, gone: true},
		"restored":               {state: away, annotations: map[string]string{recorded: "one"}, set: former(), deleted: true, reason: corev1alpha1.ReasonTargetUnreachable, text: abandoned},
		"an earlier one deleted": {state: away, annotations: map[string]string{recorded: "one"}, set: after("shop-0"), deleted: true, reason: corev1alpha1.ReasonTargetUnreachable, text: abandoned},
		"claimed":                {state: away, annotations: map[string]string{recorded: "one"}, set: claimed(), deleted: true, reason: corev1alpha1.ReasonTargetUnreachable, text: abandoned},
		"claimed once":           {state: away, annotations: map[string]string{recorded: "one"}, set: setOf("shop-1", true), deleted: true, reason: corev1alpha1.ReasonTargetUnreachable, text: abandoned},
		"claimed, unrecorded":    {state: away, set: claimed(), deleted: true, reason: corev1alpha1.ReasonTargetUnreachable, text: abandoned},
		"abandoned, moved":       {state: targets.State{Ready: true}, session: "two", annotations: map[string]string{recorded: "one", abandoned: "true"}, deleted: true, gone: true},
		"without its Secret":     {state: targets.State{Reason: corev1alpha1.ReasonKubeconfigMissing, Message: "gone"}, session: "one", reason: corev1alpha1.ReasonKubeconfigMissing, text: "gone", stalled: true},
		"moved to another":       {state: targets.State{Ready: true}, session: "one", annotations: map[string]string{recorded: "one"}, moved: true, text: "targetRef differs"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dep := &corev1alpha1.ObjectDeployment{ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "shop", UID: "deployment", Finalizers: []string{corev1alpha1.CachedFinalizer}, Annotations: tc.annotations,
			}}
			ref := &corev1alpha1.TargetReference{KubeconfigSecretRef: corev1alpha1.KubeconfigSecretReference{Name: "edge"}}
			dep.Spec.Template.Spec.TargetRef, dep.Status.Revision = ref, tc.reported
			all := []client.Object{dep}
			if tc.set != nil {
				tc.set.Spec.TargetRef = ref
				all = append(all, tc.set)
			}
			if tc.moved {
				set := setOf("shop-1", false)
				set.Spec.TargetRef = &corev1alpha1.TargetReference{KubeconfigSecretRef: corev1alpha1.KubeconfigSecretReference{Name: "other"}}
				all = append(all, set)
			}
			server := newServer().WithObjects(all...).WithStatusSubresource(dep).Build()
			if tc.deleted {
				require.NoError(t, server.Delete(t.Context(), dep))
			}
			r := New(Home{Client: server, Reader: server, Events: events.NewFakeRecorder(10), Now: time.Now},
				&engine.Engine{Cluster: liveOf(t, servesThings), Tracker: tracking.New(apinames.Default)}, func(objects.OwnerKey) {})
			one := &oneTarget{state: tc.state}
			if tc.session != "" {
				one.session = NewTarget(&engine.Engine{Cluster: liveOf(t, servesThings), Tracker: tracking.New(apinames.Default)}, r.Reader, r.enqueue, tc.session, "home")
			}
			r.Targets, r.restored = one, true
			if _, err := r.Reconcile(t.Context(), objects.OwnerKey{Kind: "ObjectDeployment", Namespace: "shop", Name: "shop"}); err != nil {
				t.Fatal(err)
			}
			err := server.Get(t.Context(), client.ObjectKeyFromObject(dep), dep)
			if (client.IgnoreNotFound(err) == nil && err != nil) != tc.gone {
				t.Fatalf("gone: %v, want %t", err, tc.gone)
			}
			if tc.gone {
				return
			}
			conds := dep.Status.Conditions
			connected, reconciling := meta.FindStatusCondition(conds, corev1alpha1.ConditionTargetConnected), meta.FindStatusCondition(conds, corev1alpha1.ConditionReady)
			if tc.reason != "" && (connected == nil || connected.Status != "False" || connected.Reason != tc.reason) {
				t.Errorf("TargetConnected is %+v", connected)
			}
			if reconciling == nil || !strings.Contains(reconciling.Message, tc.text) {
				t.Errorf("Ready is %+v, want %q", reconciling, tc.text)
			}
			if tc.reason != "" && meta.IsStatusConditionTrue(conds, corev1alpha1.ConditionStalled) != tc.stalled {
				t.Errorf("stalled: %+v", conds)
			}
			want := targets.Ref{Namespace: "shop", Name: "edge", Key: "value"}
			if tc.moved {
				want.Name = "other"
			}
			require.Equal(t, want, one.ref, "connected to")
		})
	}
}

// TestReleaseIsInterrupted: an owner without writes is released even if the revisions, which prove
// that, are already deleted.
func TestReleaseIsInterrupted(t *testing.T) {
	t.Parallel()
	dep := &corev1alpha1.ObjectDeployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "shop", UID: "deployment", Finalizers: []string{corev1alpha1.CachedFinalizer},
		Annotations: map[string]string{corev1alpha1.TargetClusterAnnotation: "one"},
	}}
	ref := &corev1alpha1.TargetReference{KubeconfigSecretRef: corev1alpha1.KubeconfigSecretReference{Name: "edge"}}
	set := setOf("shop-1", false)
	dep.Spec.Template.Spec.TargetRef, set.Spec.TargetRef = ref, ref
	interrupted := false
	server := newServer().WithObjects(dep, set).WithStatusSubresource(dep).
		WithInterceptorFuncs(interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if _, is := obj.(*corev1alpha1.ObjectDeployment); is && len(obj.GetFinalizers()) == 0 && !interrupted {
				interrupted = true
				return context.Canceled
			}
			return c.Patch(ctx, obj, patch, opts...)
		}}).Build()
	require.NoError(t, server.Delete(t.Context(), dep))
	key := objects.OwnerKey{Kind: "ObjectDeployment", Namespace: "shop", Name: "shop"}
	for range 2 {
		r := New(Home{Client: server, Reader: server, Events: events.NewFakeRecorder(10), Now: time.Now},
			&engine.Engine{Cluster: liveOf(t, servesThings), Tracker: tracking.New(apinames.Default)}, func(objects.OwnerKey) {})
		r.Targets, r.restored = &oneTarget{state: targets.State{Reason: corev1alpha1.ReasonTargetUnreachable}}, true
		_, err := r.Reconcile(t.Context(), key)
		t.Log(err)
	}
	if err := server.Get(t.Context(), client.ObjectKeyFromObject(dep), dep); !interrupted || !apierrors.IsNotFound(err) {
		t.Errorf("interrupted %t, then %v", interrupted, err)
	}
}
