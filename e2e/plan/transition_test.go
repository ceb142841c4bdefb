package plan_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/internal/cli/dryrun"
	"lockstep.run/lockstep/test/require"
)

// definition returns a CustomResourceDefinition of Dials with the given properties in their
// spec and the given versions. The last version is the stored one.
func definition(group, properties string, versions ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: dials.%s
  annotations: {package-operator.run/phase: crds}
spec:
  group: %[1]s
  scope: Namespaced
  names: {kind: Dial, listKind: DialList, plural: dials, singular: dial}
  versions:
`, group)
	for i, version := range versions {
		fmt.Fprintf(&b, `  - name: %s
    served: true
    storage: %t
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {%s}}}}}
`, version, i == len(versions)-1, properties)
	}
	return b.String()
}

func dial(group, version, namespace, spec string) string {
	return fmt.Sprintf("apiVersion: %s/%s\nkind: Dial\nmetadata: {name: main, namespace: %s, annotations: {package-operator.run/phase: resources}}\nspec: {%s}\n", group, version, namespace, spec)
}

const established = `  availabilityProbes:
  - selector: {kind: {group: apiextensions.k8s.io, kind: CustomResourceDefinition}}
    probes: [{condition: {type: Established, status: "True"}}]
`

// A definition and its resources change together: the resource is not judged by the
// schema that is served before.
func TestPlanOfADefinitionWithItsResources(t *testing.T) {
	t.Parallel()
	env := shared(t)
	env.Namespace(t, "dials")
	const group = "dials.example.com"
	files := func(crd, cr string) harness.Files {
		return harness.Files{"manifest.yaml": harness.Manifest("dials", []string{"crds", "resources"}, established), "crd.yaml": crd, "cr.yaml": cr}
	}
	const size, unit = "size: {type: integer}", "unit: {type: string, default: bar}"
	steps := []harness.Files{
		files(definition(group, size, "v1"), dial(group, "v1", "dials", "size: 1")),
		files(definition(group, size+", "+unit, "v1"), dial(group, "v1", "dials", "size: 1, unit: pascal")),       // a new field, used at once
		files(definition(group, size+", "+unit, "v1", "v2"), dial(group, "v2", "dials", "size: 2, unit: pascal")), // a new version, used at once
	}
	env.Create(t, harness.ClusterPackage("dials", env.Push(t, "dials:v0", steps[0])))
	env.WaitAvailable(t, "", "dials")
	for i, step := range steps[1:] {
		image := env.Push(t, fmt.Sprintf("dials:v%d", i+1), step)
		p := planOf(t, env, image, "clusterpackage/dials")
		if p.Outcome != dryrun.OutcomeChanges || len(p.Refusals) > 0 {
			t.Errorf("step %d: %s, %+v", i+1, p.Outcome, p.Refusals)
		}
		change := p.Phases[1].Changes
		if len(change) != 1 || change[0].Action != dryrun.ActionChange || !strings.Contains(change[0].Unverified, "CustomResourceDefinition") || len(change[0].Fields) == 0 {
			t.Errorf("step %d: the resource: %+v", i+1, change)
		}
		env.SetImage(t, "", "dials", image)
		env.WaitAvailable(t, "", "dials")
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v2", Kind: "Dial"})
	require.NoError(t, env.Client.Get(t.Context(), types.NamespacedName{Namespace: "dials", Name: "main"}, u))
	if unit, _, _ := unstructured.NestedString(u.Object, "spec", "unit"); unit != "pascal" {
		t.Errorf("the unit is %q", unit)
	}
}

// A namespace that is being deleted is waited for: objects in it are not refused for that.
func TestPlanIntoANamespaceThatGoes(t *testing.T) {
	t.Parallel()
	env := shared(t)
	held := &corev1.Namespace{}
	held.Name, held.Finalizers = "leaving", nil
	held.Spec.Finalizers = []corev1.FinalizerName{"kubernetes", "example.com/hold"}
	env.Create(t, held)
	require.NoError(t, env.Client.Delete(t.Context(), held))
	t.Cleanup(func() {
		held.Spec.Finalizers = nil
		_ = env.Client.SubResource("finalize").Update(t.Context(), held)
	})
	files := harness.Files{
		"manifest.yaml": harness.Manifest("leaving", []string{"namespace", "content"}, ""),
		"ns.yaml":       "apiVersion: v1\nkind: Namespace\nmetadata: {name: leaving, annotations: {package-operator.run/phase: namespace}}\n",
		"cm.yaml":       strings.Replace(harness.ConfigMap("inside", "content", "v"), "  name: inside\n", "  name: inside\n  namespace: leaving\n", 1),
	}
	p := planOf(t, env, env.Push(t, "leaving:v1", files), "clusterpackage/leaving")
	if p.Outcome != dryrun.OutcomeChanges || p.Summary.Create != 2 || p.Phases[1].Changes[0].Unverified == "" {
		t.Errorf("%s: %+v, %+v", p.Outcome, p.Refusals, p.Phases)
	}
}

// Values of a Secret are in no message about it.
func TestRefusedSecretIsNotQuoted(t *testing.T) {
	t.Parallel()
	env := shared(t)
	env.Namespace(t, "quoted")
	files := harness.Files{
		"manifest.yaml": harness.Manifest("quoted", []string{"deploy"}, ""),
		"secret.yaml":   "apiVersion: v1\nkind: Secret\nmetadata: {name: quoted, annotations: {package-operator.run/phase: deploy}}\nstringData: {password: first}\n",
	}
	image := env.Push(t, "quoted:v1", files)
	env.Create(t, harness.Package("quoted", "quoted", image))
	env.WaitAvailable(t, "quoted", "quoted")
	for name, content := range map[string]string{
		"text": "stringData: {password: hunter2hunter2, \"no key\": x}\n", "base64": "data: {password: \"hunter2hunter2!\"}\n",
		"type": "type: kubernetes.io/tls\nstringData: {password: hunter2hunter2}\n",
	} {
		files["secret.yaml"] = "apiVersion: v1\nkind: Secret\nmetadata: {name: quoted, annotations: {package-operator.run/phase: deploy}}\n" + content
		code, out, errOut := plan(t, env, env.Push(t, "quoted:"+name, files), "package/quoted", "-n", "quoted")
		t.Log(out, errOut)
		if code != 1 || strings.Contains(out+errOut, "hunter2") || strings.Contains(out+errOut, "aHVudGVy") {
			t.Errorf("%s: %d\n%s%s", name, code, out, errOut)
		}
	}
}

// If one object of a revision in slices changes, the plan shows all others as unchanged. It
// also shows the deletion of an object that was dropped together with its definition.
func TestPlanOfASlicedPackage(t *testing.T) {
	t.Parallel()
	env := shared(t)
	env.Namespace(t, "sliced")
	const group = "sliced.example.com"
	files := harness.Phased("sliced", 3, 20)
	for path, content := range files {
		files[path] = strings.ReplaceAll(content, "\n  annotations:", "\n  namespace: sliced\n  annotations:")
	}
	files["manifest.yaml"] = harness.Manifest("sliced", []string{"crds", "resources", "phase-00", "phase-01", "phase-02"}, established)
	without := files.Clone()
	files["crd.yaml"] = definition(group, "size: {type: integer}", "v1")
	files["cr.yaml"] = dial(group, "v1", "sliced", "size: 1")
	env.Create(t, harness.ClusterPackage("sliced", env.Push(t, "sliced:v1", files)))
	env.WaitAvailable(t, "", "sliced")
	without["phase-01.yaml"] = strings.Replace(without["phase-01.yaml"], `value: "v1"`, `value: "v2"`, 1)
	image := env.Push(t, "sliced:v2", without)
	p := planOf(t, env, image, "clusterpackage/sliced")
	want := dryrun.Summary{Change: 1, Delete: 2, Unchanged: 59}
	if p.Outcome != dryrun.OutcomeChanges || p.Summary != want {
		t.Errorf("%s, %+v, %+v", p.Outcome, p.Summary, p.Refusals)
	}
	var order []string
	for _, c := range p.Cleanup {
		order = append(order, c.Object())
	}
	require.Equal(t, []string{"Dial sliced/main", "CustomResourceDefinition dials." + group}, order, "deleted objects")
	if len(p.Losses) > 0 { // the package's own resource is deleted before its definition
		t.Errorf("losses: %+v", p.Losses)
	}
	env.SetImage(t, "", "sliced", image)
	env.WaitAvailable(t, "", "sliced")
	// Both are deleted after the rollout has succeeded.
	env.WaitGone(t, harness.Patience, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "dials." + group}})
	if p := planOf(t, env, image, "clusterpackage/sliced"); p.Outcome != dryrun.OutcomeNothing || p.Summary.Unchanged != 60 {
		t.Errorf("afterwards: %s, %+v", p.Outcome, p.Summary)
	}
}

// The plan does not show a sensitive value if its object changes, even if the new release no
// longer has a sensitive value.
func TestPlanHidesWhatWasSensitive(t *testing.T) {
	t.Parallel()
	env := shared(t)
	env.Namespace(t, "hidden")
	const value = "hunter2hunter2hunter2"
	env.Create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "hidden", Name: "source"}, StringData: map[string]string{"values.yaml": "password: " + value + "\n"}})
	manifest := harness.Manifest("hidden", []string{"deploy"}, "  config:\n    openAPIV3Schema:\n      type: object\n      properties: {password: {type: string}}\n")
	exposed := func(v string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: exposed\n  annotations: {package-operator.run/phase: deploy, package-operator.run/expose-secret-values: \"true\"}\ndata: {password: " + v + "}\n"
	}
	pkg := harness.Package("hidden", "hidden", env.Push(t, "hidden:v1", harness.Files{"manifest.yaml": manifest, "cm.yaml.gotmpl": exposed(`"{{ .config.password }}"`)}))
	pkg.Spec.ConfigFrom = []corev1alpha1.ValueSource{{SecretKeyRef: &corev1alpha1.SecretKeyReference{Name: "source", Key: "values.yaml"}}}
	env.Create(t, pkg)
	env.WaitAvailable(t, "hidden", "hidden")
	second := env.Push(t, "hidden:v2", harness.Files{"manifest.yaml": manifest, "cm.yaml": exposed("none")})
	for _, format := range []string{"yaml", "json", ""} {
		args := []string{second, "package/hidden", "-n", "hidden"}
		if format != "" {
			args = append(args, "-o", format)
		}
		code, out, errOut := plan(t, env, args...)
		if code != 0 || !strings.Contains(out, "data.password") || !strings.Contains(out, "(hidden)") || strings.Contains(out+errOut, "hunter2") {
			t.Errorf("%q: %d\n%s%s", format, code, out, errOut)
		}
	}
}
