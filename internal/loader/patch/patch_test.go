package patch

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
	"lockstep.run/lockstep/test/yamltest"
)

const web = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, labels: {app: web, tier: front}}
spec:
  replicas: 2
  template:
    spec:
      containers:
      - {name: main, image: main:1, args: [a, b], ports: [{containerPort: 80, name: http}], env: [{name: A, value: "1"}]}
      - {name: side, image: side:1}
`

const custom = `apiVersion: example.com/v1
kind: Shop
metadata: {name: web}
spec: {size: 3, big: 9007199254740993, ratio: 0.5, "yes": "yes", "on": true, none: null, list: [{name: a, v: 1}, {name: b}]}
`

// build returns kustomize's result for an object and patches.
func build(t *testing.T, object string, patches []Patch) map[string]any {
	t.Helper()
	var list []map[string]any
	for _, p := range patches {
		entry := map[string]any{"patch": named(t, p)}
		target := map[string]any{}
		for key, value := range map[string]string{"group": p.Target.Group, "kind": p.Target.Kind, "name": p.Target.Name, "labelSelector": p.Target.LabelSelector} {
			if value != "" {
				target[key] = value
			}
		}
		if len(target) > 0 {
			entry["target"] = target
		}
		list = append(list, entry)
	}

	kustomization, err := yaml.Marshal(map[string]any{"resources": []string{"object.yaml"}, "patches": list})
	require.NoError(t, err)
	fs := filesys.MakeFsInMemory()
	require.NoError(t, fs.WriteFile("kustomization.yaml", kustomization))
	require.NoError(t, fs.WriteFile("object.yaml", []byte(object)))
	options := krusty.MakeDefaultOptions()
	options.PluginConfig = types.DisabledPluginConfig()
	out, err := krusty.MakeKustomizer(options).Run(fs, ".")
	require.NoError(t, err)
	if out.Size() == 0 {
		return nil
	}

	text, err := out.AsYaml()
	require.NoError(t, err)
	return yamltest.Decode(t, string(text))
}

// named gives a merge the name that kustomize requires, and ignores if there is a target.
func named(t *testing.T, p Patch) string {
	t.Helper()
	if strings.HasPrefix(p.Patch, "[") {
		data, err := yaml.YAMLToJSON([]byte(p.Patch))
		require.NoError(t, err)
		return string(data)
	}

	patch := yamltest.Decode(t, p.Patch)
	for key, value := range map[string]any{"apiVersion": "apps/v1", "kind": "Any", "metadata": map[string]any{}} {
		if patch[key] == nil {
			patch[key] = value
		}
	}

	if meta := patch["metadata"].(map[string]any); meta["name"] == nil {
		meta["name"] = "any"
	}

	text, err := yaml.Marshal(patch)
	require.NoError(t, err)
	return string(text)
}

// Each outcome is compared with the expected one, and with kustomize's for the same patches.
func TestApply(t *testing.T) {
	t.Parallel()
	deployment := Target{Kind: "Deployment"}
	shop := Target{Kind: "Shop"}
	for _, test := range []struct {
		reason, object string
		patches        []Patch
		check          func(t *testing.T, out map[string]any)
	}{
		{"a mapping is merged", web, []Patch{{Target: deployment, Patch: "spec: {replicas: 5}"}}, at("spec.replicas", int64(5))},
		{"containers are merged by name", web, []Patch{{Target: deployment, Patch: "spec: {template: {spec: {containers: [{name: side, image: side:2}]}}}"}}, at("spec.template.spec.containers.0.image", "side:2")},
		{"a new element comes first, as in kustomize", web, []Patch{{Target: deployment, Patch: "spec: {template: {spec: {containers: [{name: new, image: n}]}}}"}}, at("spec.template.spec.containers.0.name", "new")},
		{"an element is deleted by directive", web, []Patch{{Target: deployment, Patch: "spec: {template: {spec: {containers: [{name: main, $patch: delete}]}}}"}}, at("spec.template.spec.containers.0.name", "side")},
		{"a list of texts is replaced", web, []Patch{{Target: deployment, Patch: "spec: {template: {spec: {containers: [{name: main, args: [c]}]}}}"}}, at("spec.template.spec.containers.0.args", []any{"c"})},
		{"null removes a field", web, []Patch{{Target: deployment, Patch: "spec: {replicas: null}"}}, at("spec.replicas", nil)},
		{"a mapping is replaced by directive", web, []Patch{{Target: deployment, Patch: "metadata: {labels: {$patch: replace, only: this}}"}}, at("metadata.labels", map[string]any{"only": "this"})},
		{"the whole object is deleted", web, []Patch{{Target: deployment, Patch: "$patch: delete"}}, gone},
		{"what the object is called stays", web, []Patch{{Target: deployment, Patch: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: any}\nspec: {paused: true}"}}, at("metadata.name", "web")},
		{"lists of unknown kinds are replaced", custom, []Patch{{Target: shop, Patch: "spec: {list: [{name: b, v: 2}]}"}}, at("spec.list", []any{map[string]any{"name": "b", "v": int64(2)}})},
		{"numbers and words keep their types", custom, []Patch{{Target: shop, Patch: "spec: {x: 1, word: 'on', more: 'no'}"}}, at("spec.big", int64(9007199254740993))},
		{"a JSON patch", web, []Patch{{Target: deployment, Patch: `[{op: replace, path: /spec/replicas, value: 7}, {op: add, path: /metadata/annotations, value: {a.b/c: d}}, {op: remove, path: /spec/template/spec/containers/1}]`}}, at("metadata.annotations", map[string]any{"a.b/c": "d"})},
		{"a test that holds", web, []Patch{{Target: deployment, Patch: `[{op: test, path: /spec/replicas, value: 2}, {op: copy, from: /spec/replicas, path: /spec/minReadySeconds}]`}}, at("spec.minReadySeconds", int64(2))},
		{"each patch works on the outcome of the one before", web, []Patch{
			{Target: deployment, Patch: "spec: {replicas: 5}"}, {Target: deployment, Patch: "[{op: test, path: /spec/replicas, value: 5}, {op: replace, path: /spec/replicas, value: 6}]"},
		}, at("spec.replicas", int64(6))},
		{"group, kind and name are regular expressions for the whole", web, []Patch{{Target: Target{Group: "app.", Kind: "Dep.*", Name: "w.b"}, Patch: "spec: {replicas: 5}"}}, at("spec.replicas", int64(5))},
		{"not for a part", web, []Patch{{Target: Target{Name: "we"}, Patch: "spec: {replicas: 5}"}, {Target: Target{Kind: "Deploy"}, Patch: "spec: {replicas: 5}"}}, at("spec.replicas", int64(2))},
		{"labels", web, []Patch{{Target: Target{LabelSelector: "app in (web, x), tier=front"}, Patch: "spec: {replicas: 5}"}}, at("spec.replicas", int64(5))},
		{"other labels", web, []Patch{{Target: Target{LabelSelector: "app!=web"}, Patch: "spec: {replicas: 5}"}}, at("spec.replicas", int64(2))},
		{"without a target the patch names its object", web, []Patch{{Patch: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\nspec: {replicas: 5}"}}, at("spec.replicas", int64(5))},
	} {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			set, problems := Compile(test.patches)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			out, _, problem := set.Apply(yamltest.Decode(t, test.object))
			if problem != nil {
				t.Fatal(problem)
			}
			test.check(t, out)
			require.Equal(t, build(t, test.object, test.patches), out, "kustomize makes something else of it")
		})
	}
}

// JSON allows characters that YAML refuses or folds, and that kustomize itself cannot merge.
func TestSpecialCharacters(t *testing.T) {
	t.Parallel()
	const text = "a\x7fb\u0085c\u009fd\ufffee\uffff\u2028f"
	set, problems := Compile([]Patch{{Target: Target{Kind: "Shop"}, Patch: "spec: {x: 1}"}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	out, _, problem := set.Apply(map[string]any{"apiVersion": "shop.example/v1", "kind": "Shop", "metadata": map[string]any{"name": "a"}, "spec": map[string]any{text: text}})
	if problem != nil {
		t.Fatal(problem)
	}
	require.Equal(t, map[string]any{text: text, "x": int64(1)}, out["spec"])
}

// kustomize keeps a new name in a JSON patch; here no patch changes the identity of an object.
func TestNoPatchRenames(t *testing.T) {
	t.Parallel()
	for _, patch := range []string{
		"apiVersion: x/v1\nkind: Job\nmetadata: {name: other, namespace: other}",
		"[{op: replace, path: /metadata/name, value: other}, {op: remove, path: /metadata/namespace}, {op: replace, path: /kind, value: Job}]",
		"[{op: remove, path: /metadata}, {op: remove, path: /apiVersion}]",
	} {
		set, problems := Compile([]Patch{{Target: Target{Kind: "Deployment"}, Patch: patch}})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		out, _, problem := set.Apply(yamltest.Decode(t, web))
		if problem != nil {
			t.Fatal(problem)
		}
		for path, want := range map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata.name": "web", "metadata.namespace": "shop"} {
			at(path, want)(t, out)
		}
	}
}

// at checks the value at a dotted path; nil means that it is missing.
func at(path string, want any) func(*testing.T, map[string]any) {
	return func(t *testing.T, out map[string]any) {
		t.Helper()
		var value any = out
		for step := range strings.SplitSeq(path, ".") {
			switch v := value.(type) {
			case map[string]any:
				value = v[step]
			case []any:
				var i int
				if _, err := fmt.Sscan(step, &i); err != nil || i >= len(v) {
					t.Fatalf("no %s in %v", step, v)
				}
				value = v[i]
			}
		}
		require.Equal(t, want, value, path)
	}
}

func gone(t *testing.T, out map[string]any) {
	t.Helper()
	if out != nil {
		t.Error("the object is still there")
	}
}

func TestCompileProblems(t *testing.T) {
	t.Parallel()
	all := Target{Kind: ".*"}
	for _, test := range []struct {
		reason string
		patch  Patch
		want   string
		limit  bool
	}{
		{"no YAML", Patch{Target: all, Patch: "a: ["}, "patch: line 1 of the patch", false},
		{"nothing", Patch{Target: all, Patch: "# nothing"}, "patch: the patch has 0 documents, not 1", false},
		{"two", Patch{Target: all, Patch: "a: 1\n---\nb: 1"}, "patch: the patch has 2 documents, not 1", false},
		{"text", Patch{Target: all, Patch: "hello"}, "patch: the patch is neither a mapping to merge nor a list", false},
		{"alias bomb", Patch{Target: all, Patch: "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f]"}, fmt.Sprintf("more than %d values", limits.DocumentNodes), false},
		{"operation", Patch{Target: all, Patch: "[x]"}, "patch[0]: an operation has to be a mapping", false},
		{"unknown operation", Patch{Target: all, Patch: "[{op: ad, path: /a}]"}, "patch[0].op: op has to be one of", false},
		{"path", Patch{Target: all, Patch: "[{op: add, path: a}]"}, "patch[0].path: path has to be a JSON pointer", false},
		{"JSON patch without target", Patch{Patch: "[{op: remove, path: /a}]"}, "target: a JSON patch needs a target", false},
		{"merge without target and name", Patch{Patch: "kind: X"}, "target: the patch has no target, and does not name its object", false},
		{"regular expression", Patch{Target: Target{Name: "("}, Patch: "a: 1"}, `target.name: "(" is neither a name nor a regular expression`, false},
		{"long expression", Patch{Target: Target{Kind: strings.Repeat("a", limits.TemplatePatternBytes+1)}, Patch: "a: 1"}, "target.kind: ", true},
		{"selector", Patch{Target: Target{LabelSelector: "a in"}, Patch: "a: 1"}, "target.labelSelector: ", false},
		{"long selector", Patch{Target: Target{LabelSelector: strings.Repeat("a", limits.TemplatePatternBytes+1)}, Patch: "a: 1"}, "target.labelSelector: ", true},
		{"long patch", Patch{Target: all, Patch: strings.Repeat("#", limits.PatchBytes+1)}, fmt.Sprintf("more than %d bytes", limits.PatchBytes), true},
	} {
		_, problems := Compile([]Patch{test.patch})
		if len(problems) != 1 {
			t.Errorf("%s: %v", test.reason, problems)
			continue
		}
		if got := problems[0].Part + ": " + problems[0].Details; !strings.Contains(got, test.want) || problems[0].Source != "spec.patches[0]" || problems[0].Limit != test.limit {
			t.Errorf("%s: %+v", test.reason, problems[0])
		}
	}

	if _, problems := Compile(make([]Patch, limits.Patches+1)); len(problems) != 1 || !problems[0].Limit {
		t.Error("the number of patches is not limited")
	}
}

func TestApplyProblems(t *testing.T) {
	t.Parallel()
	all := Target{Kind: ".*"}
	doubling := "["
	for i := range 60 {
		doubling += fmt.Sprintf("{op: copy, from: /spec, path: /spec/x%d},", i)
	}

	doubling += "]"
	for _, test := range []struct {
		reason, patch, want string
		limit               bool
	}{
		{"a test that fails", "[{op: test, path: /spec/replicas, value: 3}]", "patch[0]: test of /spec/replicas: the object has another value there", false},
		{"no such path", "[{op: test, path: /spec/replicas, value: 2}, {op: remove, path: /spec/x/y}]", "patch[1]: remove of /spec/x/y: the object has no such path", false},
		{"no such index", "[{op: remove, path: /spec/template/spec/containers/9}]", "patch[0]: remove of /spec/template/spec/containers/9: the ", false},
		{"the document is replaced", "[{op: replace, path: '', value: [1]}]", "the result is not an object", false},
		{"copies that double", doubling, "copies more than", true},
		{"a mapping for a text", "spec: {template: {spec: {containers: {a: b}}}}", "the patch does not fit the object", false},
		{"a list for a mapping", "metadata: [1]", "the patch does not fit the object", false},
		{"unknown directive", "spec: {$patch: geheim}", "the patch does not fit the object", false},
	} {
		set, problems := Compile([]Patch{{Target: all, Patch: test.patch, Source: "spec.patches[4]"}})
		if len(problems) > 0 {
			t.Errorf("%s: %v", test.reason, problems)
			continue
		}
		_, applied, problem := set.Apply(yamltest.Decode(t, web))
		if problem == nil || problem.Source != "spec.patches[4]" || !cmp.Equal(applied, []string{"spec.patches[4]"}) {
			t.Errorf("%s: %v, %v", test.reason, problem, applied)
			continue
		}
		if got := problem.Part + ": " + problem.Details; !strings.Contains(got, test.want) || problem.Limit != test.limit || strings.Contains(got, "geheim") {
			t.Errorf("%s: %s", test.reason, got)
		}
	}
}

func TestUnused(t *testing.T) {
	t.Parallel()
	set, _ := Compile([]Patch{{Target: Target{Kind: "Deployment"}, Patch: "a: 1"}, {Target: Target{Kind: "Pod"}, Patch: "a: 1"}})
	if _, _, problem := set.Apply(yamltest.Decode(t, web)); problem != nil {
		t.Fatal(problem)
	}
	require.Equal(t, []string{"spec.patches[1]"}, set.Unused())
}

// A patch of some kilobytes must not take minutes to apply.
func TestHostilePatches(t *testing.T) {
	t.Parallel()
	list := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "{name: a%d}, ", i)
		}
		return b.String()
	}

	merge := func(n int) Patch {
		return Patch{Patch: "{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {containers: [" + list(n) + "]}}"}
	}

	operations := func(n int) Patch {
		return Patch{Target: Target{Kind: "Pod"}, Patch: "[" + strings.Repeat("{op: add, path: /spec/containers/0, value: {}}, ", n) + "]"}
	}

	for _, test := range []struct {
		reason  string
		patches []Patch
		objects int
		want    string
	}{
		{"a long list into a long list", []Patch{merge(2000)}, 2000, fmt.Sprintf("the limit of the product is %d", limits.PatchMergeWork)},
		{"a short list into a long list", []Patch{merge(10)}, 2000, ""},
		{"many operations", []Patch{operations(limits.PatchOperations + 1)}, 1, fmt.Sprintf("more than %d operations", limits.PatchOperations)},
		{"many operations together", []Patch{operations(limits.PatchOperations), operations(1)}, 1, fmt.Sprintf("more than %d operations", limits.PatchOperations)},
		{"some operations", []Patch{operations(100)}, 1, ""},
	} {
		set, problems := Compile(test.patches)
		if len(problems) == 0 {
			object := yamltest.Decode(t, "{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {containers: ["+list(test.objects)+"]}}")
			if _, _, problem := set.Apply(object); problem != nil {
				problems = append(problems, problem)
			}
		}
		if test.want == "" && len(problems) > 0 || test.want != "" && (len(problems) != 1 || !problems[0].Limit || !strings.Contains(problems[0].Error(), test.want)) {
			t.Errorf("%s: %v", test.reason, problems)
		}
	}
}
