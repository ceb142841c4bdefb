package hostedclusterpackages

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/inputs/environment"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/test/require"
)

func TestSelectClusters(t *testing.T) {
	t.Parallel()
	cluster := func(namespace, name, tier string, deleting bool) environment.HostedCluster {
		return environment.HostedCluster{
			Key: types.NamespacedName{Namespace: namespace, Name: name}, Namespace: objects.HostedNamespace(namespace, name),
			Labels: map[string]string{"tier": tier}, Deleting: deleting,
		}
	}
	known := []environment.HostedCluster{
		cluster("a", "b-c", "low", false), cluster("a", "going", "low", true), cluster("a", "high", "high", false), cluster("a-b", "c", "low", false),
	}
	h := owner()
	h.Spec.HostedClusterSelector.MatchLabels = map[string]string{"tier": "low"}
	selected, err := selectClusters(h, known)
	var names []types.NamespacedName
	for _, c := range must(t, selected, err) {
		names = append(names, c.Key)
	}
	require.Equal(t, []types.NamespacedName{{Namespace: "a", Name: "b-c"}}, names, "one for each namespace of a control plane")
	h.Spec.HostedClusterSelector = metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "x", Operator: "Like"}}}
	if _, err := selectClusters(h, known); !errors.Is(err, errSelector) {
		t.Error(err)
	}
}

func TestForeign(t *testing.T) {
	t.Parallel()
	h := owner()
	s := &reconciliation{}
	s.owner = h
	controlled := func(kind, name string, uid types.UID) func(*corev1alpha1.Package) {
		yes := true
		return func(p *corev1alpha1.Package) {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: name, UID: uid, Controller: &yes}}
		}
	}
	for name, tc := range map[string]struct {
		change  func(*corev1alpha1.Package)
		want    string
		pending bool
	}{
		"ours":          {controlled("HostedClusterPackage", "shop", "owner"), "", false},
		"left":          {func(p *corev1alpha1.Package) { p.Annotations = map[string]string{corev1alpha1.HashAnnotation: "x"} }, "", false},
		"a user's":      {func(*corev1alpha1.Package) {}, "was not made for this", false},
		"former":        {controlled("HostedClusterPackage", "shop", "before"), "is being removed", true},
		"of another":    {controlled("ObjectSet", "set", "other"), "is controlled by ObjectSet set", false},
		"another owner": {controlled("HostedClusterPackage", "other", "other"), "is controlled by HostedClusterPackage other", false},
	} {
		pkg := &corev1alpha1.Package{}
		tc.change(pkg)
		message, pending := s.foreign(pkg)
		if (message == "") != (tc.want == "") || !strings.Contains(message, tc.want) || pending != tc.pending {
			t.Errorf("%s: %q %t", name, message, pending)
		}
	}
}

func TestRolloutOf(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status func(*corev1alpha1.Package)
		want   string
	}{
		"new":         {func(p *corev1alpha1.Package) { p.Status.Conditions = nil }, ""},
		"rolled out":  {func(*corev1alpha1.Package) {}, "available progressed stable rolledOut"},
		"not loaded":  {func(p *corev1alpha1.Package) { p.Generation++ }, ""},
		"unavailable": {set(corev1alpha1.ConditionAvailable, false), "progressed"},
		"not ready":   {func(p *corev1alpha1.Package) { kstatus(p, conditions.State{Reason: "x"}) }, "available progressed"},
		"failed":      {func(p *corev1alpha1.Package) { kstatus(p, conditions.State{Stalled: true, Reason: "x"}) }, "available progressed failed"},
		"pull failed": {func(p *corev1alpha1.Package) { set(corev1alpha1.ConditionUnpacked, false)(p) }, "available stable rolledOut"},
		"paused": {func(p *corev1alpha1.Package) {
			p.Spec.Paused = true
			set(corev1alpha1.ConditionPaused, true)(p)
			p.Generation++
		}, "available stable paused"},
		"paused while it is unavailable": {func(p *corev1alpha1.Package) {
			p.Spec.Paused = true
			set(corev1alpha1.ConditionAvailable, false)(p)
		}, "progressed"},
	} {
		pkg := &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
		set(corev1alpha1.ConditionAvailable, true)(pkg)
		set(corev1alpha1.ConditionUnpacked, true)(pkg)
		set(corev1alpha1.ConditionProgressing, false)(pkg)
		kstatus(pkg, conditions.State{Ready: true, Reason: "x"})
		tc.status(pkg)
		var got target
		rolloutOf(&got, pkg)
		var words []string
		for _, w := range []struct {
			name  string
			holds bool
		}{{"available", got.available}, {"progressed", got.progressed}, {"stable", got.stable}, {"rolledOut", got.rolledOut}, {"failed", got.failed}, {"paused", got.paused}} {
			if w.holds {
				words = append(words, w.name)
			}
		}
		require.Equal(t, tc.want, strings.Join(words, " "), name)
	}
}

func set(typ string, status bool) func(*corev1alpha1.Package) {
	return func(p *corev1alpha1.Package) {
		conditions.Set(&p.Status.Conditions, p.Generation, typ, status, "x", "")
	}
}

func kstatus(p *corev1alpha1.Package, state conditions.State) {
	conditions.Kstatus(&p.Status.Conditions, p.Generation, state)
}
