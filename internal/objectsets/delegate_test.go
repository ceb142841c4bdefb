package objectsets_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/test/require"
)

func stored(texts ...string) []corev1alpha1.ObjectSetObject {
	var all []corev1alpha1.ObjectSetObject
	for _, text := range texts {
		all = append(all, corev1alpha1.ObjectSetObject{Object: runtime.RawExtension{Raw: []byte(text)}})
	}
	return all
}

func configMapNamed(name string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q}}`, name)
}

// classSet is a set with one phase of a class.
func classSet(class string, objects ...corev1alpha1.ObjectSetObject) *corev1alpha1.ObjectSet {
	set := &corev1alpha1.ObjectSet{}
	set.Name, set.Namespace, set.UID = "shop-1", "shop", "set"
	set.Spec.Revision = 7
	set.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{{Name: "remote", Class: class, Objects: objects}}
	return set
}

func load(set corev1alpha1.GenericObjectSet, in objectsets.Stored) *engine.Revision {
	return objectsets.Load(set, in, objects.Owner{Names: apinames.Default}, func(gk schema.GroupKind, _ string) (namespaced, known bool) { return gk.Kind != "ClusterRole", true })
}

// TestPhaseName: names are Package Operator's, unless they are too long.
func TestPhaseName(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 250)
	require.Equal(t, "shop-1-remote", objectsets.PhaseName("shop-1", "remote"))
	one, other := objectsets.PhaseName(long, "one"), objectsets.PhaseName(long, "two")
	if len(one) != 253 || len(other) != 253 || one == other {
		t.Errorf("%s, %s", one, other)
	}
}

// TestLoadDelegates: the ObjectSetPhase has the metadata of its set that others read, and the
// objects of slices.
func TestLoadDelegates(t *testing.T) {
	t.Parallel()
	set := classSet("far", stored(configMapNamed("a"))...)
	set.Labels = map[string]string{corev1alpha1.ObjectDeploymentLabel: "shop"}
	set.Annotations = map[string]string{
		corev1alpha1.HashAnnotation: "hash", corev1alpha1.ClaimedAnnotation: "true", corev1alpha1.DeletionPolicyAnnotation: corev1alpha1.DeletionPolicyKeep,
		corev1alpha1.PausedByParentAnnotation: "true", corev1alpha1.ChangeCauseAnnotation: "why",
	}
	set.Spec.Previous = []corev1alpha1.PreviousRevisionReference{{Name: "shop-0"}}
	set.Spec.Phases[0].Slices = []string{"slice"}
	rev := load(set, objectsets.Stored{Slices: map[string][]corev1alpha1.ObjectSetObject{"slice": stored(configMapNamed("b"))}})
	if rev.Blocked() != "" || len(rev.Phases) != 1 || len(rev.Phases[0].Objects) != 1 {
		t.Fatalf("%q, %+v", rev.Blocked(), rev.Phases)
	}
	d := rev.Phases[0].Objects[0]
	got, err := d.Object(rev.Metadata)
	require.NoError(t, err)
	want := map[string]any{}
	if err := json.Unmarshal([]byte(`{
		"apiVersion": "package-operator.run/v1alpha1", "kind": "ObjectSetPhase",
		"metadata": {
			"name": "shop-1-remote", "namespace": "shop",
			"labels": {"package-operator.run/object-deployment": "shop", "package-operator.run/phase-class": "far"},
			"annotations": {"package-operator.run/hash": "hash", "kubernetes.io/change-cause": "why"},
			"ownerReferences": [{"apiVersion": "package-operator.run/v1alpha1", "kind": "ObjectSet", "name": "shop-1", "uid": "set", "controller": true}]},
		"spec": {"revision": 7, "previous": [{"name": "shop-0"}], "objects": [
			{"object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}},
			{"object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}}}]}}`), &want); err != nil {
		t.Fatal(err)
	}
	require.Equal(t, want, got)
	if delegates := rev.Delegates(); len(delegates) != 1 || delegates[0].Delegate.Objects != 2 || delegates[0].Class() != "far" {
		t.Errorf("%+v", delegates)
	}
}

// TestDelegatesNameTheirAccount: an ObjectSetPhase that is orphaned is still written as the account
// of its set.
func TestDelegatesNameTheirAccount(t *testing.T) {
	t.Parallel()
	set := classSet(corev1alpha1.PhaseClassDefault, stored(configMapNamed("a"))...)
	set.Annotations = map[string]string{corev1alpha1.ServiceAccountAnnotation: "other"}
	for _, account := range []string{"small", ""} {
		set.Spec.ServiceAccountName = account
		rev := load(set, objectsets.Stored{})
		made, err := rev.Phases[0].Objects[0].Object(rev.Metadata)
		require.NoError(t, err)
		if got, _, _ := unstructured.NestedString(made, "metadata", "annotations", corev1alpha1.ServiceAccountAnnotation); got != account {
			t.Errorf("it names %q, want %q", got, account)
		}
	}
}

// TestLoadRefusesDelegates: what an agent cannot do safely, or an ObjectSetPhase cannot hold, is
// refused as a whole.
func TestLoadRefusesDelegates(t *testing.T) {
	t.Parallel()
	far := func(change func(*corev1alpha1.ObjectSet), objects ...string) *corev1alpha1.ObjectSet {
		set := classSet("far", stored(objects...)...)
		if change != nil {
			change(set)
		}
		return set
	}
	for name, tc := range map[string]struct {
		set  *corev1alpha1.ObjectSet
		says string
	}{
		"any kind elsewhere":     {far(nil, `{"apiVersion":"v1","kind":"ClusterRole","metadata":{"name":"a","namespace":"b"}}`), ""},
		"cluster-scoped here":    {classSet("default", stored(`{"apiVersion":"v1","kind":"ClusterRole","metadata":{"name":"a"}}`)...), "must be namespace scoped"},
		"another namespace here": {classSet("default", stored(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"b"}}`)...), "must stay within the same namespace"},
		"here as well": {far(func(s *corev1alpha1.ObjectSet) {
			s.Spec.Phases[0].Class = "default"
			s.Spec.Phases = append(s.Spec.Phases, corev1alpha1.ObjectSetTemplatePhase{Name: "two", Objects: stored(configMapNamed("a"))})
		}, configMapNamed("a")), `Phase "two", ConfigMap a: Duplicate Object, it is in phase "remote" already`},
		"elsewhere and here": {far(func(s *corev1alpha1.ObjectSet) {
			s.Spec.Phases = append(s.Spec.Phases, corev1alpha1.ObjectSetTemplatePhase{Name: "two", Objects: stored(configMapNamed("a"))})
		}, configMapNamed("a")), ""},
		"twice elsewhere": {far(nil, configMapNamed("a"), configMapNamed("a")), "Duplicate Object"},
		"no name":         {far(nil, `{"apiVersion":"v1","kind":"ConfigMap"}`), "metadata.name are required"},
		"owners":          {far(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","ownerReferences":[{"uid":"x"}]}}`), "ownerReferences must be empty"},
		"a path":          {far(nil, configMapNamed("../a")), "is not a valid name"},
		"sensitive": {far(func(s *corev1alpha1.ObjectSet) { s.Spec.Phases[0].SecretSlices = []string{"secret"} }),
			`Phase "remote": has objects with sensitive values, which would be readable in its ObjectSetPhase: remove the class`},
		"sensitive here": {far(func(s *corev1alpha1.ObjectSet) {
			s.Spec.Phases[0].Class, s.Spec.Phases[0].SecretSlices = "default", []string{"secret"}
		}), "sensitive values"},
		"target":  {far(func(s *corev1alpha1.ObjectSet) { s.Spec.TargetRef = &corev1alpha1.TargetReference{} }), "remove the class, or targetRef"},
		"account": {far(func(s *corev1alpha1.ObjectSet) { s.Spec.ServiceAccountName = "small" }), "not with ServiceAccount small"},
		"account here": {far(func(s *corev1alpha1.ObjectSet) {
			s.Spec.Phases[0].Class, s.Spec.ServiceAccountName = "default", "small"
		}), ""},
		"class": {far(func(s *corev1alpha1.ObjectSet) { s.Spec.Phases[0].Class = "no class" }), "is not a valid label value"},
		"name":  {far(func(s *corev1alpha1.ObjectSet) { s.Spec.Phases[0].Name = "Remote_1" }), "its name is a part of the name of an ObjectSetPhase"},
		"large": {far(nil, fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":%q}}`, strings.Repeat("a", 1<<20))),
			`Phase "remote": with a class, it is stored as one ObjectSetPhase, which has 10`},
	} {
		rev := load(tc.set, objectsets.Stored{Secrets: map[string][]corev1alpha1.ObjectSetObject{"secret": nil}})
		if tc.says == "" && rev.Blocked() != "" || !strings.Contains(rev.Blocked(), tc.says) {
			t.Errorf("%s: blocked by %q, want %q", name, rev.Blocked(), tc.says)
		}
	}
}
