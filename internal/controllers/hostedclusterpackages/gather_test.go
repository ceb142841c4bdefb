package hostedclusterpackages

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"

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

func owner() *corev1alpha1.HostedClusterPackage {
	h := &corev1alpha1.HostedClusterPackage{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "owner", Generation: 3}}
	h.Spec.Template.Metadata = metav1.ObjectMeta{Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}, Finalizers: []string{"x"}}
	h.Spec.Template.Spec = corev1alpha1.PackageSpec{Image: "shop:v1", Config: &runtime.RawExtension{Raw: []byte(`{"deep":{"list":[1,2]}}`)}}
	return h
}

func must[T any](t *testing.T, value T, err error) T {
	t.Helper()
	require.NoError(t, err)
	return value
}

// made returns the Package as the API server makes it of an apply.
func made(t *testing.T, tmpl *template) *corev1alpha1.Package {
	t.Helper()
	pkg := &corev1alpha1.Package{}
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(tmpl.body("ns", nil).Object, pkg))
	pkg.UID, pkg.ResourceVersion = "uid", "7"
	return pkg
}

func TestBody(t *testing.T) {
	t.Parallel()
	tmpl, err := templateOf(owner())
	must(t, 0, err)
	want := `{"apiVersion":"package-operator.run/v1alpha1","kind":"Package","metadata":{"annotations":{"c":"d","package-operator.run/hash":"` + tmpl.hash +
		`"},"labels":{"a":"b"},"name":"shop","namespace":"ns","ownerReferences":[{"apiVersion":"package-operator.run/v1alpha1","blockOwnerDeletion":true,` +
		`"controller":true,"kind":"HostedClusterPackage","name":"shop","uid":"owner"}],"resourceVersion":"1"},"spec":{"config":{"deep":{"list":[1,2]}},"image":"shop:v1"}}`
	got, err := json.Marshal(tmpl.body("ns", nil).Object)
	require.Equal(t, want, string(must(t, got, err)), "only what the template states is applied")
	known := &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{UID: "uid", ResourceVersion: "7"}}
	if u := tmpl.body("ns", known); u.GetUID() != "uid" || u.GetResourceVersion() != "7" {
		t.Error("an update is guarded by the UID:", u.Object)
	}
}

func TestMatches(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*corev1alpha1.HostedClusterPackage, *corev1alpha1.Package)
		want   bool
	}{
		"as it was made": {func(*corev1alpha1.HostedClusterPackage, *corev1alpha1.Package) {}, true},
		"fields of others": {func(_ *corev1alpha1.HostedClusterPackage, p *corev1alpha1.Package) {
			p.Spec.Paused, p.Labels["x"], p.Annotations["y"], p.Finalizers = true, "y", "z", []string{"f"}
		}, true},
		"of an earlier engine": {func(_ *corev1alpha1.HostedClusterPackage, p *corev1alpha1.Package) {
			delete(p.Annotations, corev1alpha1.HashAnnotation)
		}, true},
		"a changed field": {func(_ *corev1alpha1.HostedClusterPackage, p *corev1alpha1.Package) { p.Spec.Image = "other" }, false},
		"a changed config": {func(_ *corev1alpha1.HostedClusterPackage, p *corev1alpha1.Package) {
			p.Spec.Config.Raw = []byte(`{"deep":{"list":[1]}}`)
		}, false},
		"a changed label":      {func(_ *corev1alpha1.HostedClusterPackage, p *corev1alpha1.Package) { p.Labels["a"] = "x" }, false},
		"a changed annotation": {func(_ *corev1alpha1.HostedClusterPackage, p *corev1alpha1.Package) { delete(p.Annotations, "c") }, false},
		"another template": {func(h *corev1alpha1.HostedClusterPackage, _ *corev1alpha1.Package) {
			h.Spec.Template.Spec.Component = "x"
		}, false},
		"a field that left": {func(h *corev1alpha1.HostedClusterPackage, _ *corev1alpha1.Package) { h.Spec.Template.Spec.Config = nil }, false},
		"a label that left": {func(h *corev1alpha1.HostedClusterPackage, _ *corev1alpha1.Package) {
			h.Spec.Template.Metadata.Labels = nil
		}, false},
		"other fields of spec": {func(h *corev1alpha1.HostedClusterPackage, _ *corev1alpha1.Package) {
			h.Spec.HostedClusterSelector.MatchLabels = map[string]string{"a": "b"}
		}, true},
		"order of keys of JSON": {func(h *corev1alpha1.HostedClusterPackage, _ *corev1alpha1.Package) {
			h.Spec.Template.Spec.Config.Raw = []byte(` {"deep": {"list":[1, 2]}}`)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := owner()
			tmpl, err := templateOf(h)
			pkg := made(t, must(t, tmpl, err))
			tc.change(h, pkg)
			tmpl, err = templateOf(h)
			got, err := must(t, tmpl, err).matches(pkg)
			require.Equal(t, tc.want, must(t, got, err), fmt.Sprintf("matches: %t", got))
		})
	}
}
