package loader

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/violation"
)

// pkg makes the files of a package out of pairs of path and content.
func pkg(pairs ...string) Files {
	f := Files{}
	for i := 0; i < len(pairs); i += 2 {
		f[pairs[i]] = []byte(pairs[i+1])
	}
	return f
}

const head = "apiVersion: manifests.package-operator.run/v1alpha1\nkind: PackageManifest\nmetadata: {name: shop}\n"

const plain = head + "spec:\n  scopes: [Namespaced, Cluster]\n  phases: [{name: first}, {name: second}]\n"

func configMap(name, phase, more string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name +
		"\n  annotations:\n    package-operator.run/phase: " + phase + "\n" + more
}

func namespaced(change ...func(*Options)) Options {
	o := Options{}
	o.Package.Metadata.Name, o.Package.Metadata.Namespace, o.Package.Image = "my-shop", "team-a", "example.com/shop:v1"
	for _, f := range change {
		f(&o)
	}
	return o
}

func strict(o *Options)  { o.Strict = true }
func cluster(o *Options) { o.Package.Metadata.Namespace = "" }
func withConfig(text string) func(*Options) {
	return func(o *Options) { o.Config = []byte(text) }
}

func TestLoad(t *testing.T) {
	t.Parallel()
	files := pkg(
		"manifest.yaml", strings.Replace(plain, "spec:\n", "spec:\n  version: 1.2.3+build.4\n  provider: ACME\n", 1)+`
  availabilityProbes:
  - selector: {kind: {group: apps, kind: Deployment}}
    probes: [{condition: {type: Available}}]
  config:
    openAPIV3Schema:
      type: object
      properties: {tier: {type: string, default: web}}
`,
		"z.yaml", configMap("z", "first", "data: {b: <&>, a: x}")+"\n---\n"+configMap("z2", "second", "data: {c: '1'}"),
		"a/b.yaml.gotmpl", configMap("{{.package.metadata.name}}-{{.config.tier}}", "first",
			"    example.com/keep: x\n    package-operator.run/collision-protection: IfNoController\n    package-operator.run/condition-map: |\n      Ready => example.com/Ready\n  labels: {app: x}\n  creationTimestamp: null\nstatus: {}\n"),
		"README.md", "hello",
	)
	p, err := Load(context.Background(), files, namespaced(withConfig(`{"tier":"db"}`)))
	if err != nil {
		t.Fatal(err)
	}
	labels := `"labels":{%s"package-operator.run/instance":"my-shop","package-operator.run/package":"my-shop"}`
	want := []struct {
		phase      string
		collision  corev1alpha1.CollisionProtection
		mappings   int
		objectJSON string
	}{
		{"first", "IfNoController", 1, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{"example.com/keep":"x"},` + fmt.Sprintf(labels, `"app":"x",`) + `,"name":"my-shop-db"}}`},
		{"first", "Prevent", 0, `{"apiVersion":"v1","data":{"a":"x","b":"\u003c\u0026\u003e"},"kind":"ConfigMap","metadata":{` + fmt.Sprintf(labels, "") + `,"name":"z"}}`},
		{"second", "Prevent", 0, `{"apiVersion":"v1","data":{"c":"1"},"kind":"ConfigMap","metadata":{` + fmt.Sprintf(labels, "") + `,"name":"z2"}}`},
	}
	i := 0
	for _, phase := range p.Phases {
		for _, o := range phase.Objects {
			w := want[i]
			if phase.Name != w.phase || o.CollisionProtection != w.collision || len(o.ConditionMappings) != w.mappings || string(o.Object.Raw) != w.objectJSON {
				t.Errorf("object %d of phase %s: %s, %v, %v", i, phase.Name, o.Object.Raw, o.CollisionProtection, o.ConditionMappings)
			}
			i++
		}
	}
	if i != len(want) || p.Objects() != i || len(p.Warnings) != 0 || len(p.Template().AvailabilityProbes) != 1 || p.Probes[0].Probes[0].Condition.Status != "True" {
		t.Error(i, p.Warnings, p.Probes)
	}
	wantLabels := map[string]string{
		"package-operator.run/package": "my-shop", "package-operator.run/instance": "my-shop",
		"package-operator.run/version": "1.2.3_build.4", "package-operator.run/provider": "ACME",
	}
	if diff := cmp.Diff(wantLabels, p.Labels); diff != "" {
		t.Error(diff)
	}
}

// lines are the violations of loading, one a line.
func lines(t *testing.T, files Files, opts Options) string {
	t.Helper()
	_, err := Load(context.Background(), files, opts)
	if err == nil {
		return ""
	}
	var vs violation.Violations
	if !errors.As(err, &vs) {
		t.Fatalf("%T: %v", err, err)
	}
	return vs.Error()
}

func TestManifestProblems(t *testing.T) {
	t.Parallel()
	spec := func(more string) string { return plain + more }
	replace := func(old, with string) string { return strings.Replace(plain, old, with, 1) }
	for _, test := range []struct {
		name, manifest string
		opts           Options
		want           string
	}{
		{"typo, strict", strings.Replace(plain, "phases:", "phaes:", 1), namespaced(strict), `PackageManifest invalid in manifest.yaml idx 0 line 6: spec.phaes: unknown field. Did you mean "phases"?`},
		{"typo, version stated", spec("  version: 1.0.0\n  availabilityProbe: []\n"), namespaced(), `line 8: spec.availabilityProbe: unknown field. Did you mean "availabilityProbes"?`},
		{"typo deep within", spec("  config: {openAPIV3Schema: {type: object, propertys: {}}}\n"), namespaced(strict), `spec.config.openAPIV3Schema.propertys: unknown field. Did you mean "properties"?`},
		{"typo, nothing near", spec("  zzzz: 1\n"), namespaced(strict), "spec.zzzz: unknown field"},
		{"later field", spec("  packageName: a.b.c\n"), namespaced(strict), "Not supported by this version in manifest.yaml idx 0 line 7: spec.packageName: the field is not supported yet. Remove it, or use a later version."},
		{"duplicate key", spec("  phases: []\n"), namespaced(), "Invalid YAML in manifest.yaml idx 0 line 7: spec.phases: the key stands twice, first in line 6"},
		{"wrong type", replace("phases: [{name: first}, {name: second}]", "phases: {name: first}"), namespaced(), "line 6: spec.phases: has to be a list, is a mapping"},
		{"wrong type of an entry", replace("{name: first}", "first"), namespaced(), "spec.phases[0]: has to be a mapping, is text"},
		{"empty entry", replace("{name: first}", "null"), namespaced(), "spec.phases[0]: the entry is empty"},
		{"no scopes", replace("scopes: [Namespaced, Cluster]", "scopes: []"), namespaced(), "line 5: spec.scopes: Required value. List Cluster, Namespaced or both."},
		{"unknown scope", replace("Namespaced", "Namespace"), namespaced(cluster), `spec.scopes[0]: Unsupported value: "Namespace". Did you mean "Namespaced"?`},
		{"no phases", replace("[{name: first}, {name: second}]", "[]"), namespaced(), "spec.phases: Required value"},
		{"phase twice", replace("second", "first"), namespaced(), `spec.phases[1].name: Duplicate value: "first"`},
		{"phase without a name", replace("{name: second}", "{}"), namespaced(), "spec.phases[1].name: Required value"},
		{"phase with a class", replace("{name: second}", "{name: second, class: default}"), namespaced(), "Not supported by this version in manifest.yaml idx 0 line 6: spec.phases[1].class"},
		{"no name", strings.Replace(plain, "{name: shop}", "{}", 1), namespaced(), "metadata.name: Required value"},
		{"terminal controls in the name", strings.Replace(plain, "name: shop", `name: "a\eb"`, 1), namespaced(), "metadata.name: control characters are not allowed"},
		{"version", spec("  version: v1.2\n"), namespaced(), `spec.version: "v1.2" is no semantic version. Write it as 1.2.3 or 1.2.3-rc.1.`},
		{"long version", spec("  version: 1.2.3-" + strings.Repeat("x", 1000) + "\n"), namespaced(), "spec.version: "},
		{"provider", spec("  provider: ACME Inc.\n"), namespaced(), `spec.provider: "ACME Inc." cannot be a label value`},
		{"icon", spec("  display: {icon: my-icon.png}\n"), namespaced(), `spec.display.icon: the package has no file "my-icon.png"`},
		{"probe without selector", spec("  availabilityProbes: [{probes: [{condition: {type: A}}]}]\n"), namespaced(), "spec.availabilityProbes[0].selector.kind: Required value"},
		{"probe without probes", spec("  availabilityProbes: [{selector: {kind: {group: a, kind: B}}}]\n"), namespaced(), "spec.availabilityProbes[0].probes: Required value"},
		{"two in one probe", spec("  availabilityProbes: [{selector: {kind: {group: a, kind: B}}, probes: [{condition: {type: A}, fieldsEqual: {fieldA: .a, fieldB: .b}}]}]\n"), namespaced(strict), "Availability probe invalid in manifest.yaml idx 0 line 7: spec.availabilityProbes[0].probes[0]: 2 of condition, fieldsEqual and cel are set"},
		{"CEL that does not compile", spec("  availabilityProbes: [{selector: {kind: {group: a, kind: B}}, probes: [{cel: {rule: 'self.', message: m}}]}]\n"), namespaced(), "Availability probe invalid in manifest.yaml idx 0 line 7: spec.availabilityProbes[0].probes[0].cel.rule"},
		{"CEL that is no bool", spec("  availabilityProbes: [{selector: {kind: {group: a, kind: B}}, probes: [{cel: {rule: 'self.a', message: m}}]}]\n"), namespaced(), "spec.availabilityProbes[0].probes[0].cel.rule"},
		{"label selector", spec("  availabilityProbes: [{selector: {kind: {group: a, kind: B}, selector: {matchLabels: {'a b': c}}}, probes: [{condition: {type: A}}]}]\n"), namespaced(), "spec.availabilityProbes[0].selector.selector"},
		{"config schema", spec("  config: {openAPIV3Schema: {type: object, properties: {a: {description: x}}}}\n"), namespaced(), "spec.config.openAPIV3Schema.properties[a].type: Required value"},
		{"images without a lock", spec("  images: [{name: a, image: example.com/a:v1}]\n"), namespaced(), "missing image in lock while using spec.images in manifest.yaml idx 0 line 7: spec.images: the package has no manifest.lock.yaml. Run kubectl package update."},
		{"unique in scope", spec("  constraints: [{uniqueInScope: {}}]\n"), namespaced(), "Not supported by this version in manifest.yaml idx 0 line 7: spec.constraints[0].uniqueInScope"},
		{"platform", spec("  constraints: [{platform: [Openshift]}]\n"), namespaced(), `Did you mean "OpenShift"?`},
		{"range", spec("  constraints: [{platformVersion: {name: Kubernetes, range: abc}}]\n"), namespaced(), `spec.constraints[0].platformVersion.range: "abc" is no range of versions`},
		{"condition name", spec("  filter: {conditions: [{name: a-b, expression: 'true'}]}\n"), namespaced(), `"a-b" cannot be the name of a condition`},
		{"condition expression", spec("  filter: {conditions: [{name: a, expression: config.x}]}\n"), namespaced(), "Filter invalid in manifest.yaml idx 0 line 7: spec.filter.conditions[0].expression: evaluation failed: no such key: x"},
		{"glob", spec("  filter: {paths: [{glob: '[', expression: 'true'}]}\n"), namespaced(), `spec.filter.paths[0].glob: "[" is no valid pattern`},
		{"test case name", plain + "test: {template: [{name: a/b}]}\n", namespaced(), "test.template[0].name"},
		{"other kind", "apiVersion: v1\nkind: ConfigMap\n", namespaced(), `unknown GVK in manifest.yaml idx 0 line 1: got apiVersion "v1" and kind "ConfigMap"`},
		{"other version", strings.Replace(plain, "v1alpha1", "v2", 1), namespaced(), `unknown version "v2", supported versions: v1alpha1`},
		{"syntax", "a: [\n", namespaced(), "Invalid YAML in manifest.yaml idx 0 line"},
		{"two documents", plain + "---\na: 1\n", namespaced(), "the file has 2 documents, not 1"},
		{"100 MB", plain + "#" + strings.Repeat("x", 100<<20), namespaced(), fmt.Sprintf("the limit is %d", limits.ManifestBytes)},
		{"many phases", replace("[{name: first}, {name: second}]", "["+strings.Repeat("{name: a},", limits.PackagePhases+1)+"]"), namespaced(), fmt.Sprintf("phases; the limit is %d", limits.PackagePhases)},
		{"many expressions", spec("  filter: {conditions: [" + strings.Repeat("{name: a, expression: 'true'},", limits.Expressions+1) + "]}\n"), namespaced(), fmt.Sprintf("expressions; the limit is %d", limits.Expressions)},
		{"scope, namespaced", replace("Namespaced, Cluster", "Cluster"), namespaced(), "Package unsupported scope in manifest.yaml idx 0 line 5: spec.scopes: the package allows Cluster only, and this is a Package. Install it as a ClusterPackage."},
		{"scope, cluster", replace("Namespaced, Cluster", "Namespaced"), namespaced(cluster), "the package allows Namespaced only, and this is a ClusterPackage. Install it as a Package."},
	} {
		if got := lines(t, pkg("manifest.yaml", test.manifest), test.opts); !strings.Contains(got, test.want) {
			t.Errorf("%s:\n got %s\nwant %s", test.name, got, test.want)
		}
	}
	for _, test := range []struct {
		name  string
		files Files
		want  string
	}{
		{"no files", pkg(), "Package image contains no files. Might be corrupted."},
		{"no manifest", pkg("a.yaml", ""), "PackageManifest not found: searched at manifest.yaml, manifest.yml"},
		{"two manifests", pkg("manifest.yaml", plain, "manifest.yml", plain), "PackageManifest present multiple times: manifest.yaml and manifest.yml exist"},
		{"two locks", pkg("manifest.yaml", plain, "manifest.lock.yaml", "", "manifest.lock.yml", ""), "PackageManifestLock present multiple times"},
	} {
		if got := lines(t, test.files, namespaced()); !strings.Contains(got, test.want) {
			t.Errorf("%s: %s", test.name, got)
		}
	}
}

// Where the manifest states no version, what Package Operator drops is dropped,
// and named.
func TestUnknownIsDroppedWithoutVersion(t *testing.T) {
	t.Parallel()
	files := pkg("manifest.yml", strings.Replace(plain, "phases:", "Phases:", 1)+"  extra: 1\n  availabilityProbes: [{selector: {kind: {group: apps, kind: Deployment}}, probes: [{condition: {type: A, status: True}}]}]\n",
		"a.yaml", configMap("a", "first", "  labels: {package-operator.run/package: x}\n  generation: 3\nstatus: {x: 1}\n"))
	p, err := Load(context.Background(), files, namespaced(withConfig(`{"a":1}`)))
	if err != nil {
		t.Fatal(err)
	}
	got := p.Warnings.Error()
	for _, want := range []string{
		`spec.Phases: unknown field, dropped. Did you mean "phases"?`, "spec.extra: unknown field, dropped",
		"status: True is not in quotes; it is read as text. Put it in quotes.", "spec.config.a: unknown key, dropped",
		"v1 ConfigMap a: metadata.generation: a package must not set it, dropped", "status: a package must not set it, dropped",
		"metadata.labels[package-operator.run/package]: a package must not set it, dropped",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no warning %q in\n%s", want, got)
		}
	}
	if raw := string(p.Phases[0].Objects[0].Object.Raw); strings.Contains(raw, "status") || strings.Contains(raw, "generation") || !strings.Contains(raw, `"package-operator.run/package":"my-shop"`) {
		t.Error(raw)
	}
	if p.Probes[0].Probes[0].Condition.Status != "True" {
		t.Error("unquoted text is read as it stands in the file")
	}
}

func TestObjectProblems(t *testing.T) {
	t.Parallel()
	annotated := func(key, value string) string { return configMap("a", "first", "    "+key+": "+value+"\n") }
	meta := func(more string) string { return configMap("a", "first", "  "+more+"\n") }
	for _, test := range []struct {
		name, object string
		opts         Options
		want         string
	}{
		{"no apiVersion", "kind: X\nmetadata: {name: a, annotations: {package-operator.run/phase: first}}", namespaced(), "GroupVersionKind not set in a.yaml idx 0 line 1: X a: apiVersion: apiVersion is missing"},
		{"bad apiVersion", "apiVersion: a/b/c\nkind: X\nmetadata: {name: a}", namespaced(), `"a/b/c" is no apiVersion`},
		{"no kind", "apiVersion: v1\nmetadata: {name: a}", namespaced(), "kind: kind is missing"},
		{"no name", "apiVersion: v1\nkind: X\nmetadata: {annotations: {package-operator.run/phase: first}}", namespaced(), "Object invalid in a.yaml idx 0 line 3: v1 X: metadata.name: the object has no name"},
		{"number as the name", "apiVersion: v1\nkind: X\nmetadata: {name: 1}", namespaced(), "the name is no text. Put it in quotes."},
		{"path in the name", configMap("a/b", "first", ""), namespaced(), `"a/b" is no name`},
		{"generateName", meta("generateName: x"), namespaced(), "metadata.generateName: a package cannot find an object again"},
		{"list", "apiVersion: v1\nkind: List\nmetadata: {name: a}\nitems: []\n", namespaced(), "a list is no object of a package"},
		{"text", "hello", namespaced(), "the document is no object"},
		{"metadata", "apiVersion: v1\nkind: X\nmetadata: [1]\n", namespaced(), "metadata has to be a mapping"},
		{"uid", meta("uid: x"), namespaced(), "line 7: v1 ConfigMap a: metadata.uid: a package must not set it. Remove it; the API server sets it."},
		{"resourceVersion", meta("resourceVersion: '1'"), namespaced(), "metadata.resourceVersion: a package must not set it"},
		{"managedFields", meta("managedFields: [{manager: x}]"), namespaced(), "metadata.managedFields: a package must not set it"},
		{"ownerReferences", meta("ownerReferences: [{name: x}]"), namespaced(), "metadata.ownerReferences: a package must not set it"},
		{"creationTimestamp", meta("creationTimestamp: '2020-01-01T00:00:00Z'"), namespaced(strict), "metadata.creationTimestamp: a package must not set it"},
		{"status", configMap("a", "first", "status: {phase: x}"), namespaced(strict), "status: a package must not set it"},
		{"no phase", "apiVersion: v1\nkind: X\nmetadata: {name: a}", namespaced(), "Missing package-operator.run/phase Annotation in a.yaml idx 0 line 1: v1 X a: the object is in no phase. Set it to a phase of the manifest."},
		{"phase misspelt", "apiVersion: v1\nkind: X\nmetadata: {name: a, annotations: {package-operator.run/phse: first}}", namespaced(), "Write it instead of package-operator.run/phse."},
		{"unknown phase", configMap("a", "frist", ""), namespaced(), `Phase name not found in manifest in a.yaml idx 0 line 6: v1 ConfigMap a: metadata.annotations[package-operator.run/phase]: phase "frist". Did you mean "first"?`},
		{"collision mode", annotated("package-operator.run/collision-protection", "none"), namespaced(), `"none" is no mode. Did you mean "None"?`},
		{"condition map", annotated("package-operator.run/condition-map", "Available"), namespaced(), `"Available" is no mapping. Write one mapping a line: Available => example.com/Available`},
		{"condition map destination", annotated("package-operator.run/condition-map", "'A => B'"), namespaced(), `"B" is no type of a mapped condition`},
		{"condition", annotated("package-operator.run/condition", "config.x"), namespaced(), "The CEL expression in package-operator.run/condition annotation is invalid. in a.yaml idx 0 line 7: v1 ConfigMap a"},
		{"deletion policy", annotated("package-operator.run/deletion-policy", "keep"), namespaced(), `"keep" is no value of it. Set it to Keep, or remove it.`},
		{"reserved annotation", annotated("package-operator.run/owners", "x"), namespaced(strict), "a package must not set it. Remove it; the engine sets it."},
		{"annotation that is no text", annotated("a", "1"), namespaced(), "Annotation invalid in a.yaml idx 0 line 7: v1 ConfigMap a: metadata.annotations.a: the value is no text. Put it in quotes."},
		{"large annotation", annotated("a", strings.Repeat("x", limits.AnnotationBytes)), namespaced(), fmt.Sprintf("the API server's limit is %d", limits.AnnotationBytes)},
		{"label value", meta("labels: {a: 'b c'}"), namespaced(), `Labels invalid in a.yaml idx 0 line 7: v1 ConfigMap a: metadata.labels.a: "b c" is no label value`},
		{"label key", meta("labels: {'a b': c}"), namespaced(), `"a b" is no valid key`},
		{"labels", meta("labels: [a]"), namespaced(), "metadata.labels has to be a mapping"},
		{"other namespace", meta("namespace: team-b"), namespaced(), `Object outside the scope of the package in a.yaml idx 0 line 7: v1 ConfigMap team-b/a: metadata.namespace: the object is in the namespace "team-b", the Package in "team-a"`},
		{"bad namespace", meta("namespace: Team"), namespaced(), `"Team" is no namespace`},
		{"cluster-scoped kind", "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: a, annotations: {package-operator.run/phase: first}}", namespaced(), "rbac.authorization.k8s.io/v1 ClusterRole a: kind: ClusterRole is cluster-scoped, and a Package may only bring objects of its own namespace. Install the package as a ClusterPackage, or leave the object out."},
		{"definition", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a, annotations: {package-operator.run/phase: first}}", namespaced(), "a CustomResourceDefinition is cluster-scoped, and a Package may only bring objects of its own namespace"},
		{"no namespace in a cluster package", configMap("a", "first", ""), namespaced(cluster), "metadata.namespace: ConfigMap is namespaced, and a ClusterPackage has no namespace of its own. Set metadata.namespace."},
		{"namespace of a cluster-scoped kind", "apiVersion: v1\nkind: Namespace\nmetadata: {name: a, namespace: b, annotations: {package-operator.run/phase: first}}", namespaced(cluster, strict), "metadata.namespace: Namespace is cluster-scoped"},
		{"twice", configMap("a", "first", "") + "---\n" + configMap("a", "second", ""), namespaced(), "Duplicate Object in a.yaml idx 1 line 11: v1 ConfigMap a: it is in a.yaml idx 0 line 4 as well"},
		{"twice, once with the namespace", configMap("a", "first", "") + "---\n" + configMap("a", "first", "  namespace: team-a\n"), namespaced(), "Duplicate Object"},
		{"large object", configMap("a", "first", "data: {a: "+strings.Repeat("x", limits.ObjectBytes)+"}"), namespaced(), fmt.Sprintf("bytes of JSON; the limit is %d", limits.ObjectBytes)},
		{"syntax", "a: [", namespaced(), "Invalid YAML in a.yaml idx 0 line 1"},
	} {
		got := lines(t, pkg("manifest.yaml", plain, "a.yaml", test.object), test.opts)
		if !strings.Contains(got, test.want) {
			t.Errorf("%s:\n got %.600s\nwant %s", test.name, got, test.want)
		}
	}
}

func TestDefinitionsOfThePackageItself(t *testing.T) {
	t.Parallel()
	crd := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a, annotations: {package-operator.run/phase: first}}\n" +
		"spec: {group: example.com, scope: Namespaced, names: {kind: Shop}}\n"
	shop := func(namespace, phase string) string {
		return fmt.Sprintf("apiVersion: example.com/v1\nkind: Shop\nmetadata: {name: x, namespace: %s, annotations: {package-operator.run/phase: %s}}\n", namespace, phase)
	}
	files := pkg("manifest.yaml", plain, "a.yaml", crd, "b.yaml", shop("''", "second"))
	if got := lines(t, files, namespaced(cluster)); !strings.Contains(got, "Shop is namespaced, and a ClusterPackage has no namespace of its own") {
		t.Error(got)
	}
	p, err := Load(context.Background(), pkg("manifest.yaml", plain, "a.yaml", crd, "b.yaml", shop("x", "second")), namespaced(cluster))
	if err != nil || len(p.Warnings) != 0 {
		t.Error(err, p)
	}
	p, err = Load(context.Background(), pkg("manifest.yaml", plain, "a.yaml", crd, "b.yaml", shop("x", "first")), namespaced(cluster))
	if err != nil || !strings.Contains(p.Warnings.Error(), `phase "first" does not come after phase "first", which brings the CustomResourceDefinition that it needs. Put it into a later phase.`) {
		t.Error(err, p)
	}
}

func TestAllProblemsAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	files := pkg(
		"manifest.yaml", plain+"  provider: a b\n  config: {openAPIV3Schema: {type: object, required: [x], properties: {x: {type: string}}}}\n",
		"a.yaml", configMap("a", "frist", ""), "b.yaml", "a: [", "c.yaml.gotmpl", "{{.config.x}}")
	got := lines(t, files, namespaced())
	for _, want := range []string{"spec.provider", `phase "frist"`, "Invalid YAML in b.yaml", "Config invalid: spec.config.x: Required value"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if got != lines(t, files, namespaced()) {
		t.Error("the text differs from run to run")
	}
	_, err := Load(context.Background(), files, namespaced())
	var vs violation.Violations
	if !errors.As(err, &vs) || vs.ConditionReason() != corev1alpha1.ReasonLoadError {
		t.Error(vs.ConditionReason())
	}
}

func TestConditionReasons(t *testing.T) {
	t.Parallel()
	env := func(o *Options) {
		o.Environment = &manifestsv1alpha1.PackageEnvironment{Kubernetes: manifestsv1alpha1.PackageEnvironmentKubernetes{Version: "v1.29.4-gke.1"}}
	}
	for _, test := range []struct {
		files Files
		opts  Options
		want  string
	}{
		{pkg("manifest.yaml", plain, "a.yaml", configMap("a", "x", "")), namespaced(), corev1alpha1.ReasonObjectInvalid},
		{pkg("manifest.yaml", plain, "a.yaml.gotmpl", "{{.config.x}}"), namespaced(), corev1alpha1.ReasonTemplateError},
		{pkg("manifest.yaml", plain+"  version: 1.0.0\n"), namespaced(withConfig(`{"a":1}`)), corev1alpha1.ReasonConfigInvalid},
		{pkg("manifest.yaml", plain+"  constraints: [{platformVersion: {name: Kubernetes, range: '>=1.30'}}]\n"), namespaced(env), corev1alpha1.ReasonConstraintsFailed},
		{pkg("manifest.yaml", plain+"  constraints: [{platform: [OpenShift]}]\n"), namespaced(env), corev1alpha1.ReasonConstraintsFailed},
		{pkg("manifest.yaml", plain+"  constraints: [{uniqueInScope: {}}]\n"), namespaced(env), corev1alpha1.ReasonUnsupported},
		{pkg("manifest.yaml", plain+"  constraints: [{platform: [Kubernetes, OpenShift]}, {platformVersion: {name: Kubernetes, range: '>=1.29.4 && !1.30'}}, {platformVersion: {name: OpenShift, range: '>=9'}}]\n"), namespaced(env), ""},
		{pkg(), namespaced(), corev1alpha1.ReasonLoadError},
	} {
		_, err := Load(context.Background(), test.files, test.opts)
		var vs violation.Violations
		got := ""
		if errors.As(err, &vs) {
			got = vs.ConditionReason()
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s (%v)", test.files["manifest.yaml"], got, test.want, err)
		}
	}
}

func TestPackageName(t *testing.T) {
	t.Parallel()
	got := lines(t, pkg("manifest.yaml", plain), namespaced(func(o *Options) { o.Package.Metadata.Name = strings.Repeat("x", 64) }))
	if !strings.Contains(got, "becomes the value of the label package-operator.run/package") || !strings.Contains(got, "at most 63 characters") {
		t.Error(got)
	}
}

func TestFilters(t *testing.T) {
	t.Parallel()
	files := pkg("manifest.yaml", plain+"  filter:\n    conditions: [{name: yes, expression: 'true'}, {name: no, expression: '\"x\" == config.name'}]\n"+
		"    paths: [{glob: 'skip/**', expression: cond.no}]\n  config: {openAPIV3Schema: {type: object, properties: {name: {type: string, default: z}}}}\n",
		"skip/a.yaml", "this need not be an object", "skip/b.yaml.gotmpl", "{{fail `nor render`}}",
		"a.yaml", configMap("a", "first", "    package-operator.run/condition: cond.no\n")+"---\n"+configMap("a", "second", "    package-operator.run/condition: '!cond.no'\n"),
		"b.yaml", "kind: X # dropped before it is checked\nmetadata: {annotations: {package-operator.run/condition: 'false'}}\n",
	)
	// "yes" is a word of YAML 1.1; the manifest wants text, and reads it as such.
	if p, err := Load(context.Background(), files, namespaced()); err != nil || p.Objects() != 1 || p.Phases[0].Name != "second" {
		t.Error(err, p)
	}
}

func TestLock(t *testing.T) {
	t.Parallel()
	digest := "sha256:" + strings.Repeat("a", 64)
	lock := func(images, dependencies string) string {
		return "apiVersion: manifests.package-operator.run/v1alpha1\nkind: PackageManifestLock\nmetadata: {creationTimestamp: '2024-01-01T00:00:00Z'}\nspec:\n  images: [" + images + "]\n  dependencies: [" + dependencies + "]\n"
	}
	manifest := plain + "  images: [{name: web, image: 'nginx:1.2'}]\n"
	template := configMap("a", "first", "data: {web: '{{.images.web}}', dep: '{{get .dependencies `dep`}}'}\n")
	good := "{name: web, image: 'nginx:1.2', digest: '" + digest + "'}"
	files := pkg("manifest.yaml", manifest, "manifest.lock.yaml", lock(good, "{name: dep, image: quay.io/x/y, digest: "+strings.Repeat("b", 64)+", version: v1}"), "a.yaml.gotmpl", template)
	p, err := Load(context.Background(), files, namespaced(strict))
	if err != nil {
		t.Fatal(err)
	}
	if raw := string(p.Phases[0].Objects[0].Object.Raw); !strings.Contains(raw, `"web":"index.docker.io/library/nginx@`+digest) || !strings.Contains(raw, `"dep":"quay.io/x/y@sha256:bb`) {
		t.Error(raw)
	}
	p, err = Load(context.Background(), files, namespaced(func(o *Options) {
		o.ImageOverride = func(s string) string { return "mirror.example/" + s }
	}))
	if err != nil || !strings.Contains(string(p.Phases[0].Objects[0].Object.Raw), `"web":"mirror.example/nginx@`+digest) {
		t.Error(err)
	}
	for _, test := range []struct{ name, lock, want string }{
		{"missing", lock("", ""), `image missing from lockfile in manifest.yaml idx 0 line 7: spec.images[0]: image "web". Run kubectl package update.`},
		{"different", lock(strings.Replace(good, "1.2", "1.3", 1), ""), `image does not match lockfile in manifest.yaml idx 0 line 7: spec.images[0].image: image "web" is "nginx:1.2" here and "nginx:1.3" in the lock`},
		{"superfluous", lock(good+", {name: x, image: y, digest: '"+digest+"'}", ""), `image "x" is in the lock and not in the manifest`},
		{"twice", lock(good+","+good, ""), `Duplicate value: "web"`},
		{"no digest", lock("{name: web, image: 'nginx:1.2', digest: latest}", ""), `"latest" is no digest`},
		{"empty", lock("{name: web, image: 'nginx:1.2'}", ""), "PackageManifestLock invalid in manifest.lock.yaml idx 0 line 5: spec.images[0].digest: Required value"},
		{"other kind", "kind: X", "unknown GVK in manifest.lock.yaml"},
	} {
		files["manifest.lock.yaml"] = []byte(test.lock)
		if got := lines(t, files, namespaced()); !strings.Contains(got, test.want) {
			t.Errorf("%s:\n got %s\nwant %s", test.name, got, test.want)
		}
	}
}

func TestComponents(t *testing.T) {
	t.Parallel()
	multi := plain + "  components: {}\n"
	component := strings.Replace(plain, "name: shop", "name: ignored", 1)
	files := pkg("manifest.yaml", multi, "a.yaml", configMap("root", "first", ""),
		"components/web/manifest.yaml", component, "components/web/a.yaml", configMap("web", "first", ""),
		"components/broken/manifest.yaml", "a: [", "components/nested/manifest.yaml", multi)
	of := func(name string) Options { return namespaced(func(o *Options) { o.Component = name }) }
	for name, want := range map[string]string{"": "shop", "web": "web"} {
		p, err := Load(context.Background(), files, of(name))
		if err != nil || p.Manifest.Name != want || p.Objects() != 1 {
			t.Errorf("%q: %v", name, err)
		}
	}
	for name, want := range map[string]string{
		"wbe": `Component not found [wbe]: component "wbe". Did you mean "web"?`, "zzzz": "The package has: broken, nested, web.", "a/b": "Invalid component path",
		"nested": "Nesting multi-component packages not allowed in manifest.yaml idx 0 line 7 [nested]", "broken": "Invalid YAML in manifest.yaml idx 0 line 1 [broken]",
	} {
		if got := lines(t, files, of(name)); !strings.Contains(got, want) {
			t.Errorf("%q: %s", name, got)
		}
	}
	if got := lines(t, pkg("manifest.yaml", plain, "components/web/x.yaml", configMap("x", "first", "")), of("web")); !strings.Contains(got, "Components not enabled") {
		t.Error(got)
	}
	if p, err := Load(context.Background(), pkg("manifest.yaml", plain, "components/web/x.yaml", configMap("x", "first", "")), of("")); err != nil || p.Objects() != 1 {
		t.Error("without components a folder of that name is a folder", err)
	}
	files["components/stray.txt"] = nil
	_, err := Validate(context.Background(), files)
	for _, want := range []string{"[nested]", "[broken]", "may only contain folders and dot files in components/stray.txt"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
}

func TestTemplatesThatRenderNonsense(t *testing.T) {
	t.Parallel()
	files := pkg("manifest.yaml", plain, "a.yaml.gotmpl", configMap("a", "first", "data:\n  x: {{ get .config `missing` }}\n"), "b.yaml.gotmpl", "a: {{ `[` }}\n")
	got := lines(t, files, namespaced())
	if !strings.Contains(got, "Invalid YAML in b.yaml.gotmpl idx 0: did not find expected node content") || !strings.Contains(got, "(line 1 of what the template renders to)") {
		t.Error(got)
	}
	delete(files, "b.yaml.gotmpl")
	p, err := Load(context.Background(), files, namespaced())
	if err != nil || !strings.Contains(p.Warnings.Error(), "Object invalid in a.yaml.gotmpl idx 0: v1 ConfigMap a: data.x: the template renders it to null (line 8 of what the template renders to). Quote it") {
		t.Error(err, p)
	}
}

func TestLoadHonoursContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Load(ctx, pkg("manifest.yaml", plain), namespaced()); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := Validate(ctx, pkg("manifest.yaml", plain)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// An alias bomb over many documents is bounded by the size of all objects.
func TestObjectsAreBoundedTogether(t *testing.T) {
	t.Parallel()
	bomb := configMap("a%d", "first", "data:\n  k: &x "+strings.Repeat("x", 1000)+"\n  l: ["+strings.Repeat("*x,", 1000)+"]\n")
	var b bytes.Buffer
	for i := range 100 {
		fmt.Fprintf(&b, bomb+"---\n", i)
	}
	if got := lines(t, pkg("manifest.yaml", plain, "a.yaml", b.String()), namespaced()); !strings.Contains(got, fmt.Sprintf("the objects have more than %d bytes of JSON", limits.PackageBytes)) {
		t.Errorf("%.200s", got)
	}
}

// The same input gives the same bytes, whatever the order of Go's maps.
func TestLoadIsDeterministic(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		files := pkg("manifest.yaml", plain+"  config: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}\n")
		for i := range rapid.IntRange(1, 8).Draw(rt, "files") {
			phase := rapid.SampledFrom([]string{"first", "second", "second", "third"}).Draw(rt, "phase")
			name := rapid.StringMatching(`[a-c]{1,3}`).Draw(rt, "name")
			ext := rapid.SampledFrom([]string{".yaml", ".yml", ".yaml.gotmpl"}).Draw(rt, "ext")
			dir := rapid.SampledFrom([]string{"", "a/", "a-b/", "ab/"}).Draw(rt, "dir")
			data := "data: {b: x, a: y, c: '1'}\n"
			if strings.HasSuffix(ext, "gotmpl") {
				data = "data:\n  all: {{ toJson .config | quote }}\n"
			}
			files[fmt.Sprintf("%s%s%d%s", dir, name, i, ext)] = []byte(configMap(name, phase, data))
		}
		opts := namespaced(withConfig(`{"z":{"b":1,"a":[1,2]},"y":true}`))
		encode := func() string {
			p, err := Load(context.Background(), maps.Clone(files), opts)
			if err != nil {
				return err.Error()
			}
			data, err := json.Marshal(p)
			if err != nil {
				rt.Fatal(err)
			}
			return string(data)
		}
		first := encode()
		for range 3 {
			if again := encode(); again != first {
				rt.Fatal(cmp.Diff(first, again))
			}
		}
	})
}

func FuzzLoad(f *testing.F) {
	f.Add(plain, configMap("a", "first", "data: {a: b}"), "{{.config}}", `{"a":1}`)
	f.Fuzz(func(t *testing.T, manifest, object, template, config string) {
		files := pkg("manifest.yaml", manifest, "a.yaml", object, "b.yaml.gotmpl", template)
		p, err := Load(context.Background(), files, namespaced(withConfig(config)))
		if (p == nil) != (err != nil) {
			t.Fatal(p, err)
		}
	})
}

func BenchmarkLoadThousandObjects(b *testing.B) {
	for _, kind := range []string{"yaml", "gotmpl"} {
		files := pkg("manifest.yaml", plain)
		for i := range 1000 {
			name := fmt.Sprintf("o%d.yaml", i)
			body := "data:\n  one: value-one\n  two: value-two\n  three: \"3\"\n  text: |\n    some lines\n    of text\n"
			if kind == "gotmpl" {
				name += ".gotmpl"
				body += "  name: {{ .package.metadata.name | quote }}\n"
			}
			files[name] = []byte(configMap(fmt.Sprintf("object-%d", i), "first", body))
		}
		b.Run(kind, func(b *testing.B) {
			for b.Loop() {
				if _, err := Load(context.Background(), files, namespaced()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
