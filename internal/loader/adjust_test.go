package loader

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/loader/violation"
	"lockstep.run/lockstep/test/require"
)

// raws returns the objects of a package as JSON, by phase and name.
func raws(t *testing.T, files Files, opts Options) (objects []string, warnings violation.Violations) {
	t.Helper()
	p, err := Load(context.Background(), files, opts)
	require.NoError(t, err)
	for _, phase := range p.Phases {
		for _, o := range phase.Objects {
			objects = append(objects, phase.Name+" "+string(o.CollisionProtection)+" "+string(o.Object.Raw))
		}
	}
	return objects, p.Warnings
}

const ours = `"labels":{"package-operator.run/instance":"my-shop","package-operator.run/package":"my-shop"},`

func TestPatches(t *testing.T) {
	t.Parallel()
	files := pkg("manifest.yaml", plain, "a.yaml.gotmpl", configMap("a", "first", "  labels: {app: x}\ndata: {k: v}\n"), "b.yaml", configMap("b", "first", "")+
		"---\n"+strings.Replace(configMap("gone", "first", ""), "annotations:", "annotations:\n    package-operator.run/condition: 'false'", 1))
	target := PatchTarget{Kind: "ConfigMap", Name: "a"}
	for _, test := range []struct {
		reason  string
		patches []Patch
		want    string
		count   int
	}{
		{"a merge", []Patch{{Target: target, Patch: "data: {k: w}"}}, `first Prevent {"apiVersion":"v1","data":{"k":"w"},`, 2},
		{"a JSON patch", []Patch{{Target: target, Patch: "[{op: add, path: /data/l, value: x}]"}}, `"data":{"k":"v","l":"x"}`, 2},
		{"the phase can be changed", []Patch{{Target: target, Patch: "metadata: {annotations: {package-operator.run/phase: second}}"}}, `second Prevent {"apiVersion":"v1","data":{"k":"v"}`, 2},
		{"the collision protection, too", []Patch{{Target: target, Patch: "metadata: {annotations: {package-operator.run/collision-protection: None}}"}}, "first None ", 2},
		{"an object is left out", []Patch{{Target: target, Patch: "$patch: delete"}}, `"name":"b"`, 1},
		{"by labels", []Patch{{Target: PatchTarget{LabelSelector: "app=x"}, Patch: "data: {k: w}"}}, `"data":{"k":"w"}`, 2},
		{"the engine's labels stay", []Patch{{Target: target, Patch: "metadata: {labels: {$patch: replace, l: m}}"}}, `"labels":{"l":"m","package-operator.run/instance":"my-shop","package-operator.run/package":"my-shop"}`, 2},
	} {
		got, warnings := raws(t, files, namespaced(func(o *Options) { o.Patches = test.patches }))
		if len(got) != test.count || !strings.Contains(strings.Join(got, "\n"), test.want) || len(warnings) > 0 {
			t.Errorf("%s: %s\n%s", test.reason, strings.Join(got, "\n"), warnings)
		}
	}
}

func TestPatchProblems(t *testing.T) {
	t.Parallel()
	files := pkg("manifest.yaml", plain, "a.yaml", configMap("a", "first", "data: {k: v}\n"))
	target := PatchTarget{Kind: "ConfigMap"}
	for _, test := range []struct {
		reason  string
		patches []Patch
		want    string
	}{
		{"not readable", []Patch{{Target: target, Patch: "a: 1"}, {Target: target, Patch: "a: ["}}, "Patch invalid: spec.patches[1].patch: line 1 of the patch: did not find expected node content"},
		{"of another source", []Patch{{Target: target, Patch: "", Source: "spec.patches[0].patchFrom"}}, "Patch invalid: spec.patches[0].patchFrom.patch: the patch has 0 documents, not 1"},
		{"does not fit", []Patch{{Target: target, Patch: "[{op: remove, path: /x}]"}}, "Patch invalid in a.yaml idx 0 line 1: v1 ConfigMap a: spec.patches[0].patch[0]: remove of /x: the object has no such path. Correct spec.patches of the Package."},
		{"makes the object invalid", []Patch{{Target: target, Patch: "metadata: {annotations: {package-operator.run/phase: third}}"}}, `phase "third" (after spec.patches[0]). `},
		{"takes a reserved label", []Patch{{Target: target, Patch: "metadata: {uid: x}"}}, "metadata.uid: a package must not set it (after spec.patches[0])"},
		{"takes metadata away", []Patch{{Target: target, Patch: "[{op: remove, path: /metadata}]"}}, "the object is in no phase (after spec.patches[0])"},
		{"comes too late for a condition", []Patch{{Target: target, Patch: "metadata: {annotations: {package-operator.run/condition: 'false'}}"}}, "the annotation is evaluated before the patches (after spec.patches[0]). Delete the object with a patch instead: $patch: delete."},
		{"matches nothing", []Patch{{Target: PatchTarget{Name: "z"}, Patch: "a: 1"}}, "Patch invalid: spec.patches[0]: it matches no object of the package. Correct its target, or remove the patch."},
	} {
		opts := namespaced(func(o *Options) { o.Patches = test.patches })
		require.Contains(t, lines(t, files, opts), test.want, test.reason)
	}

	_, err := Load(context.Background(), files, namespaced(func(o *Options) { o.Patches = []Patch{{Patch: "a: ["}} }))
	var vs violation.Violations
	if !errors.As(err, &vs) || vs.ConditionReason() != corev1alpha1.ReasonPatchInvalid {
		t.Error(err)
	}
}

func TestCommonMetadata(t *testing.T) {
	t.Parallel()
	files := pkg("manifest.yaml", plain, "a.yaml", configMap("a", "first", "    note: package\n  labels: {app: x}\n"))
	common := func(labels, annotations map[string]string) Options {
		return namespaced(func(o *Options) { o.CommonMetadata = CommonMetadata{Labels: labels, Annotations: annotations} })
	}
	got, _ := raws(t, files, common(map[string]string{"app": "y", "team": "a"}, map[string]string{"note": "ours", "example.com/x": "long text, with spaces"}))
	want := []string{`first Prevent {"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{"example.com/x":"long text, with spaces","note":"ours"},` +
		`"labels":{"app":"y","package-operator.run/instance":"my-shop","package-operator.run/package":"my-shop","team":"a"},"name":"a"}}`}
	require.Equal(t, want, got)
	for _, test := range []struct {
		labels, annotations map[string]string
		want                string
	}{
		{map[string]string{corev1alpha1.PackageLabel: "x"}, nil, "Common metadata invalid: spec.commonMetadata.labels[package-operator.run/package]: the engine sets keys that start with package-operator.run/. Remove it."},
		{nil, map[string]string{corev1alpha1.PhaseAnnotation: "second"}, "spec.commonMetadata.annotations[package-operator.run/phase]: the engine sets"},
		{nil, map[string]string{"slices.package-operator.run/owner": "x"}, "spec.commonMetadata.annotations[slices.package-operator.run/owner]: the engine sets"},
		{map[string]string{"a b": "x"}, nil, `spec.commonMetadata.labels[a b]: "a b" is not a valid key`},
		{map[string]string{"a": "b c"}, nil, `spec.commonMetadata.labels.a: "b c" is not a valid label value`},
	} {
		require.Contains(t, lines(t, files, common(test.labels, test.annotations)), test.want)
	}
}

func TestDefaultNamespace(t *testing.T) {
	t.Parallel()
	crd := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a, annotations: {package-operator.run/phase: first}}\n" +
		"spec: {group: example.com, scope: Namespaced, names: {kind: Shop}}\n"

	custom := func(group, kind string) string {
		return "apiVersion: " + group + "/v1\nkind: " + kind + "\nmetadata: {name: x, annotations: {package-operator.run/phase: second}}\nspec: {big: 9007199254740993}\n"
	}

	files := pkg("manifest.yaml", plain, "a.yaml", crd, "b.yaml", custom("example.com", "Shop"), "c.yaml", custom("served.example", "Known"),
		"d.yaml", custom("served.example", "Wide"), "e.yaml", custom("other.example", "Unknown"), "f.yaml", configMap("own", "first", "  namespace: elsewhere\n"),
		"g.yaml", configMap("plain", "first", ""), "h.yaml", strings.Replace(configMap("ns", "first", ""), "ConfigMap", "Namespace", 1))

	opts := namespaced(cluster, func(o *Options) {
		o.DefaultNamespace = "shop"
		o.Namespaced = func(kind schema.GroupKind) (bool, bool) { return kind.Kind == "Known", kind.Group == "served.example" }
	})
	got, warnings := raws(t, files, opts)
	want := []string{
		`first Prevent {"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{` + ours + `"name":"a"},"spec":{"group":"example.com","names":{"kind":"Shop"},"scope":"Namespaced"}}`,
		`first Prevent {"apiVersion":"v1","kind":"ConfigMap","metadata":{` + ours + `"name":"own","namespace":"elsewhere"}}`,
		`first Prevent {"apiVersion":"v1","kind":"ConfigMap","metadata":{` + ours + `"name":"plain","namespace":"shop"}}`,
		`first Prevent {"apiVersion":"v1","kind":"Namespace","metadata":{` + ours + `"name":"ns"}}`,
		`second Prevent {"apiVersion":"example.com/v1","kind":"Shop","metadata":{` + ours + `"name":"x","namespace":"shop"},"spec":{"big":9007199254740993}}`,
		`second Prevent {"apiVersion":"served.example/v1","kind":"Known","metadata":{` + ours + `"name":"x","namespace":"shop"},"spec":{"big":9007199254740993}}`,
		`second Prevent {"apiVersion":"served.example/v1","kind":"Wide","metadata":{` + ours + `"name":"x"},"spec":{"big":9007199254740993}}`,
		`second Prevent {"apiVersion":"other.example/v1","kind":"Unknown","metadata":{` + ours + `"name":"x"},"spec":{"big":9007199254740993}}`,
	}

	require.Equal(t, want, got)
	if len(warnings) != 1 || !strings.Contains(warnings.Error(), "other.example/v1 Unknown x: metadata.namespace: it is not known whether Unknown.other.example is namespaced; spec.defaultNamespace is not applied") {
		t.Error(warnings)
	}
	require.Contains(t, lines(t, files, namespaced(func(o *Options) { o.DefaultNamespace = "shop" })), "Config invalid: spec.defaultNamespace: it is for a ClusterPackage only")
	require.Contains(t, lines(t, files, namespaced(cluster, func(o *Options) { o.DefaultNamespace = "a/b" })), `spec.defaultNamespace: "a/b" is not a valid namespace`)

	files["i.yaml"] = []byte(configMap("plain", "first", "  namespace: shop\n"))
	require.Contains(t, lines(t, files, opts), "Duplicate Object in i.yaml", "objects are compared in the namespace that they get")
}

func TestCollisionProtection(t *testing.T) {
	t.Parallel()
	files := pkg("manifest.yaml", plain, "a.yaml", configMap("a", "first", ""), "b.yaml", configMap("b", "first", "    package-operator.run/collision-protection: Prevent\n"))
	got, _ := raws(t, files, namespaced(func(o *Options) { o.CollisionProtection = corev1alpha1.CollisionProtectionIfNoController }))
	if !strings.HasPrefix(got[0], "first IfNoController ") || !strings.HasPrefix(got[1], "first Prevent ") {
		t.Error(got)
	}
	require.Contains(t, lines(t, files, namespaced(func(o *Options) { o.CollisionProtection = "none" })), `spec.collisionProtection: "none" is not a valid mode. Did you mean "None"?`)
}
