package objectdeployments

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/test/require"
)

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
			c := fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(namespace, phase).Build()
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

// TestPausedAgents: a revision is paused once all of its agents are, and goes on once they do.
func TestPausedAgents(t *testing.T) {
	t.Parallel()
	agent := func(paused bool) objectsets.Agent {
		a := objectsets.Agent{Live: &objects.Observed{}}
		if paused {
			a.Conditions = []metav1.Condition{{Type: corev1alpha1.ConditionPaused, Status: metav1.ConditionTrue}}
		}
		return a
	}
	for name, tc := range map[string]struct {
		paused bool
		agents []objectsets.Agent
		want   metav1.ConditionStatus
	}{
		"no agents":           {true, nil, metav1.ConditionTrue},
		"not paused":          {false, []objectsets.Agent{agent(false)}, ""},
		"all paused":          {true, []objectsets.Agent{agent(true), agent(true)}, metav1.ConditionTrue},
		"one goes on":         {true, []objectsets.Agent{agent(true), agent(false)}, metav1.ConditionUnknown},
		"one is still paused": {false, []objectsets.Agent{agent(true), agent(false)}, metav1.ConditionUnknown},
		"one does not exist":  {true, []objectsets.Agent{{}, agent(true)}, metav1.ConditionTrue},
	} {
		var conds []metav1.Condition
		setPaused(&conds, 1, tc.paused, tc.agents)
		got := metav1.ConditionStatus("")
		if len(conds) > 0 {
			got = conds[0].Status
		}
		if got != tc.want {
			t.Errorf("%s: Paused is %q, want %q", name, got, tc.want)
		}
	}
}

// TestInTransition: a list of objects that is too short counts, unless it was cut.
func TestInTransition(t *testing.T) {
	t.Parallel()
	refs := func(n int) []corev1alpha1.ControlledObjectReference {
		all := make([]corev1alpha1.ControlledObjectReference, n)
		for i := range all {
			all[i] = corev1alpha1.ControlledObjectReference{Kind: "ConfigMap", Name: "some-longer-name-of-an-object", Namespace: "shop"}
		}
		return all
	}
	for name, tc := range map[string]struct {
		agent objectsets.Agent
		want  bool
	}{
		"all":        {objectsets.Agent{Objects: 2, ControllerOf: refs(2)}, false},
		"one less":   {objectsets.Agent{Objects: 3, ControllerOf: refs(2)}, true},
		"none":       {objectsets.Agent{Objects: 1}, true},
		"a cut list": {objectsets.Agent{Objects: 1000, ControllerOf: refs(150)}, false},
	} {
		if got := inTransition([]objectsets.Agent{tc.agent}); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
