package loader

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/violation"
	"lockstep.run/lockstep/test/require"
)

func TestManifestProblems(t *testing.T) {
	t.Parallel()
	spec := func(more string) string { return plain + more }
	replace := func(old, with string) string { return strings.Replace(plain, old, with, 1) }
	for _, test := range []struct {
		name, manifest string
		opts           Options
		want           string
	}{
		{"typo, strict", stated(strings.Replace(plain, "phases:", "phaes:", 1)), namespaced(), `PackageManifest invalid in manifest.yaml idx 0 line 6: spec.phaes: unknown field. Did you mean "phases"?`},
		{"typo, version stated", spec("  version: 1.0.0\n  availabilityProbe: []\n"), namespaced(), `line 8: spec.availabilityProbe: unknown field. Did you mean "availabilityProbes"?`},
		{"typo deep within", stated(spec("  config: {openAPIV3Schema: {type: object, propertys: {}}}\n")), namespaced(), `spec.config.openAPIV3Schema.propertys: unknown field. Did you mean "properties"?`},
		{"typo by ear", stated(strings.Replace(plain, "phases:", "fases:", 1)), namespaced(), `spec.fases: unknown field. Did you mean "phases"?`},
		{"below spec by mistake", stated(spec("  test: {template: []}\n")), namespaced(), "spec.test: unknown field."},
		{"next to spec by mistake", stated(plain) + "availabilityProbes: []\n", namespaced(), "availabilityProbes: unknown field."},
		{"typo, no similar name", stated(spec("  zzzz: 1\n")), namespaced(), "spec.zzzz: unknown field"},
		{"package name", stated(spec("  packageName: shop.example\n")), namespaced(), `spec.packageName: "shop.example" has fewer than three segments. Write it as shop.example.com.`},
		{"package name, characters", spec("  packageName: Shop.example.com\n"), namespaced(), `spec.packageName: "Shop.example.com" is not a valid package name`},
		{"release date", spec("  release: {date: 2026-13-01}\n"), namespaced(), `spec.release.date: "2026-13-01" is not a date. Write it as 2026-01-31 or 2026-01-31T12:00:00Z.`},
		{"license", spec("  release: {licenses: ['']}\n"), namespaced(), "spec.release.licenses[0]: Required value"},
		{"release notes", spec("  release: {notes: \"a\\eb\"}\n"), namespaced(), "spec.release.notes: control characters are not allowed"},
		{"long notes", spec("  release: {notes: " + strings.Repeat("x", limits.ProseBytes+1) + "}\n"), namespaced(), fmt.Sprintf("Limit exceeded in manifest.yaml idx 0 line 7: spec.release.notes: %d bytes; the limit is %d", limits.ProseBytes+1, limits.ProseBytes)},
		{"display name", spec("  display: {name: \"a\\nb\"}\n"), namespaced(), "spec.display.name: control characters are not allowed"},
		{"maintainer", spec("  display: {maintainers: [{email: a@b}]}\n"), namespaced(), "spec.display.maintainers[0].name: Required value"},
		{"keyword", spec("  display: {keywords: [a, \"b\\e[2J\"]}\n"), namespaced(), "spec.display.keywords[1]: control characters are not allowed"},
		{"empty keyword", spec("  display: {keywords: ['']}\n"), namespaced(), "spec.display.keywords[0]: Required value"},
		{"long keyword", spec("  display: {keywords: [" + strings.Repeat("x", limits.LineBytes+1) + "]}\n"), namespaced(), "spec.display.keywords[0]: 254 characters; the limit is 253"},
		{"keywords", spec("  display: {keywords: [" + strings.Repeat("a, ", limits.DisplayItems) + "a]}\n"), namespaced(), "Limit exceeded in manifest.yaml idx 0 line 7: spec.display.keywords: 51 entries; the limit is 50. Remove some."},
		{"links", spec("  display: {links: [" + strings.Repeat("{}, ", limits.DisplayItems) + "{}]}\n"), namespaced(), "spec.display.links: 51 entries; the limit is 50. Remove some."},
		{"owners", spec("  display: {owners: [" + strings.Repeat("{}, ", limits.DisplayItems) + "{}]}\n"), namespaced(), "spec.display.owners: 51 entries; the limit is 50. Remove some."},
		{"link without a name", spec("  display: {links: [{url: 'https://example.com'}]}\n"), namespaced(), "spec.display.links[0].name: Required value"},
		{"link without a URL", spec("  display: {links: [{name: a}]}\n"), namespaced(), "spec.display.links[0].url: Required value"},
		{"link that runs a script", spec("  display: {links: [{name: a, url: 'JavaScript:alert(1)'}]}\n"), namespaced(), `spec.display.links[0].url: "JavaScript:alert(1)" is not a link to a page. Write it as https://example.com/page, without user name and password.`},
		{"link, control characters", spec("  display: {links: [{name: a, url: \"java\\nscript:alert(1)\"}]}\n"), namespaced(), "spec.display.links[0].url: control characters are not allowed"},
		{"link, host", spec("  display: {links: [{name: a, url: 'https:///page'}]}\n"), namespaced(), `"https:///page" is not a link to a page`},
		{"link that looks like one elsewhere", spec("  display: {links: [{name: a, url: 'https://example.com@evil.example'}]}\n"), namespaced(), "is not a link to a page"},
		{"long link", spec("  display: {links: [{name: a, url: 'https://example.com/" + strings.Repeat("x", limits.LineBytes) + "'}]}\n"), namespaced(), "spec.display.links[0].url: 273 characters; the limit is 253"},
		{"owner", spec("  display: {owners: [{email: a@b}]}\n"), namespaced(), "spec.display.owners[0].name: Required value"},
		{"owner's email", spec("  display: {owners: [{name: a, email: \"a\\u202eb\"}]}\n"), namespaced(), "spec.display.owners[0].email: control characters are not allowed"},
		{"provides", spec("  provides: [{apiVersion: a/b/c, kind: X}]\n"), namespaced(), `spec.provides[0].apiVersion: "a/b/c" is not a valid apiVersion`},
		{"provides twice", spec("  provides: [{apiVersion: a/v1, kind: X}, {apiVersion: a/v1, kind: X}]\n"), namespaced(), `spec.provides[1]: Duplicate value: "a/v1 X"`},
		{"success delay", spec("  successDelaySeconds: -1\n"), namespaced(), "spec.successDelaySeconds: -1 is below 0"},
		{"success delay, type", spec("  successDelaySeconds: 1s\n"), namespaced(), "spec.successDelaySeconds: has to be a whole number, is text"},
		{"permissions, role", spec("  permissions: {aggregateTo: [views]}\n"), namespaced(), `spec.permissions.aggregateTo[0]: Unsupported value: "views". Did you mean "view"?`},
		{"permissions, rule", spec("  permissions: {rules: [{apiGroups: ['']}]}\n"), namespaced(), "spec.permissions.rules[0].verbs: Required value"},
		{"duplicate key", stated(spec("  phases: []\n")), namespaced(), "Invalid YAML in manifest.yaml idx 0 line 7: spec.phases: the key stands twice, first in line 6"},
		{"wrong type", replace("phases: [{name: first}, {name: second}]", "phases: {name: first}"), namespaced(), "line 6: spec.phases: has to be a list, is a mapping"},
		{"wrong type of an entry", replace("{name: first}", "first"), namespaced(), "spec.phases: has to be a mapping, is text"},
		{"empty entry", stated(replace("{name: first}", "null")), namespaced(), "spec.phases[0]: the entry is empty"},
		{"no scopes", replace("scopes: [Namespaced, Cluster]", "scopes: []"), namespaced(), "line 5: spec.scopes: Required value. List Cluster, Namespaced or both."},
		{"unknown scope", stated(replace("Namespaced", "Namespace")), namespaced(cluster), `spec.scopes[0]: Unsupported value: "Namespace". Did you mean "Namespaced"?`},
		{"phase without a name", stated(replace("{name: second}", "{}")), namespaced(), "spec.phases[1].name: the phase has no name"},
		{"class", replace("{name: second}", "{name: second, class: no class}"), namespaced(), `line 6: spec.phases[1].class: "no class" is not a valid label value`},
		{"phase with a class, name", replace("{name: second}", "{name: Second_1, class: default}"), namespaced(), "line 6: spec.phases[1].name: the name of a phase with a class is a part of the name of an object"},
		{"no name", strings.Replace(plain, "{name: shop}", "{}", 1), namespaced(), "metadata.name: Required value"},
		{"terminal controls in the name", strings.Replace(plain, "name: shop", `name: "a\eb"`, 1), namespaced(), "metadata.name: control characters are not allowed"},
		{"version", spec("  version: v1.2\n"), namespaced(), `spec.version: "v1.2" is not a semantic version. Write it as 1.2.3 or 1.2.3-rc.1.`},
		{"long version", spec("  version: 1.2.3-" + strings.Repeat("x", 1000) + "\n"), namespaced(), "spec.version: "},
		{"provider", spec("  provider: ACME Inc.\n"), namespaced(), `spec.provider: "ACME Inc." cannot be a label value`},
		{"icon", spec("  display: {icon: my-icon.png}\n"), namespaced(), `spec.display.icon: the package has no file "my-icon.png"`},
		{"probe without selector", spec("  availabilityProbes: [{probes: [{condition: {type: A}}]}]\n"), namespaced(), "spec.availabilityProbes[0].selector.kind: is missing"},
		{"probe without probes", spec("  availabilityProbes: [{selector: {kind: {group: a, kind: B}}}]\n"), namespaced(), "spec.availabilityProbes[0].probes: Required value"},
		{"two in one probe", stated(spec("  availabilityProbes: [{selector: {kind: {group: a, kind: B}}, probes: [{condition: {type: A}, fieldsEqual: {fieldA: .a, fieldB: .b}}]}]\n")), namespaced(), "Availability probe invalid in manifest.yaml idx 0 line 7: spec.availabilityProbes[0].probes[0]: 2 of condition, fieldsEqual and cel are set"},
		{"CEL that does not compile", spec("  availabilityProbes: [{selector: {kind: {group: a, kind: B}}, probes: [{cel: {rule: 'self.', message: m}}]}]\n"), namespaced(), "Availability probe invalid in manifest.yaml idx 0 line 7: spec.availabilityProbes[0].probes[0].cel.rule"},
		{"CEL that is not a bool", spec("  availabilityProbes: [{selector: {kind: {group: a, kind: B}}, probes: [{cel: {rule: 'self.a', message: m}}]}]\n"), namespaced(), "spec.availabilityProbes[0].probes[0].cel.rule"},
		{"label selector", spec("  availabilityProbes: [{selector: {kind: {group: a, kind: B}, selector: {matchLabels: {'a b': c}}}, probes: [{condition: {type: A}}]}]\n"), namespaced(), "spec.availabilityProbes[0].selector.selector"},
		{"config schema", spec("  config: {openAPIV3Schema: {type: object, properties: {a: {description: x}}}}\n"), namespaced(), "spec.config.openAPIV3Schema.properties[a].type: Required value"},
		{"images without a lock", spec("  images: [{name: a, image: example.com/a:v1}]\n"), namespaced(), "Missing image in manifest.lock.yaml, but using PackageManifest.spec.images in manifest.yaml idx 0 line 7: spec.images: the package has no manifest.lock.yaml. Run kubectl package update."},
		{"unique in scope", spec("  constraints: [{uniqueInScope: {scope: Namespaced}}]\n"), namespaced(), `spec.constraints[0].uniqueInScope.scope: Unsupported value: "Namespaced". Did you mean "Namespace"?`},
		{"platform", stated(spec("  constraints: [{platform: [Openshift]}]\n")), namespaced(), `Did you mean "OpenShift"?`},
		{"the manager is not a platform of a cluster", stated(spec("  constraints: [{platform: [Lockstep]}]\n")), namespaced(), `spec.constraints[0].platform[0]: Unsupported value: "Lockstep". Supported: Kubernetes, OpenShift.`},
		{"unknown platform with a version", stated(spec("  constraints: [{platformVersion: {name: Lokstep, range: '>1'}}]\n")), namespaced(), `spec.constraints[0].platformVersion.name: Unsupported value: "Lokstep". Did you mean "Lockstep"?`},
		{"range of the manager", spec("  constraints: [{platformVersion: {name: Lockstep, range: \"a\\e\"}}]\n"), namespaced(), `spec.constraints[0].platformVersion.range: "a\x1b" is not a range of versions`},
		{"range", spec("  constraints: [{platformVersion: {name: Kubernetes, range: abc}}]\n"), namespaced(), `spec.constraints[0].platformVersion.range: "abc" is not a range of versions`},
		{"condition name", spec("  filter: {conditions: [{name: a-b, expression: 'true'}]}\n"), namespaced(), `"a-b" cannot be the name of a condition`},
		{"condition expression", spec("  filter: {conditions: [{name: a, expression: config.x}]}\n"), namespaced(), "Filter invalid in manifest.yaml idx 0 line 7: spec.filter.conditions[0].expression: evaluation failed: no such key: x"},
		{"glob", spec("  filter: {paths: [{glob: '[', expression: 'true'}]}\n"), namespaced(), `spec.filter.paths[0].glob: "[" is not a valid pattern`},
		{"test case name", plain + "test: {template: [{name: a/b}]}\n", namespaced(), "test.template[0].name"},
		{"other kind", "apiVersion: v1\nkind: ConfigMap\n", namespaced(), `unknown GVK in manifest.yaml idx 0 line 1: got apiVersion "v1" and kind "ConfigMap"`},
		{"syntax", "a: [\n", namespaced(), "Invalid YAML in manifest.yaml idx 0 line"},
		{"two documents", stated(plain) + "---\na: 1\n", namespaced(), "the file has 2 documents, not 1"},
		{"100 MB", plain + "#" + strings.Repeat("x", 100<<20), namespaced(), fmt.Sprintf("the limit is %d", limits.ManifestBytes)},
		{"many phases", replace("[{name: first}, {name: second}]", "["+strings.Repeat("{name: a},", limits.PackagePhases+1)+"]"), namespaced(), fmt.Sprintf("phases; the limit is %d", limits.PackagePhases)},
		{"many expressions", spec("  filter: {conditions: [" + strings.Repeat("{name: a, expression: 'true'},", limits.Expressions+1) + "]}\n"), namespaced(), fmt.Sprintf("expressions; the limit is %d", limits.Expressions)},
		{"many constraints", spec("  constraints: [" + strings.Repeat("{platform: [Kubernetes]},", limits.Expressions+1) + "]\n"), namespaced(), fmt.Sprintf("constraints; the limit is %d", limits.Expressions)},
		{"long glob", spec("  filter: {paths: [{glob: '" + strings.Repeat("a", limits.TemplatePatternBytes+1) + "', expression: 'true'}]}\n"), namespaced(), fmt.Sprintf("spec.filter.paths[0].glob: %d bytes; the limit is %d", limits.TemplatePatternBytes+1, limits.TemplatePatternBytes)},
		{"long range", spec("  constraints: [{platformVersion: {name: Kubernetes, range: '>1" + strings.Repeat(" ", limits.TemplatePatternBytes) + "'}}]\n"), namespaced(), fmt.Sprintf("spec.constraints[0].platformVersion.range: %d bytes; the limit is %d", limits.TemplatePatternBytes+2, limits.TemplatePatternBytes)},
		{"scope, namespaced", replace("Namespaced, Cluster", "Cluster"), namespaced(), "Package unsupported scope in manifest.yaml idx 0 line 5: spec.scopes: the package allows Cluster only, and this is a Package. Install it as a ClusterPackage."},
		{"scope, cluster", replace("Namespaced, Cluster", "Namespaced"), namespaced(cluster), "the package allows Namespaced only, and this is a ClusterPackage. Install it as a Package."},
	} {
		require.Contains(t, lines(t, pkg("manifest.yaml", test.manifest), test.opts), test.want, test.name)
	}

	for _, test := range []struct {
		name  string
		files Files
		want  string
	}{
		{"no manifest", pkg("a.yaml", ""), "PackageManifest not found: searched at manifest.yaml, manifest.yml"},
		{"two manifests", pkg("manifest.yaml", plain, "manifest.yml", plain), "PackageManifest present multiple times: manifest.yaml and manifest.yml exist"},
		{"two locks", pkg("manifest.yaml", plain, "manifest.lock.yaml", "", "manifest.lock.yml", ""), "PackageManifestLock present multiple times"},
	} {
		require.Contains(t, lines(t, test.files, namespaced()), test.want, test.name)
	}
}

// If the manifest states no version, fields that Package Operator drops are dropped and named.
func TestUnknownIsDroppedWithoutVersion(t *testing.T) {
	t.Parallel()
	files := pkg("manifest.yml", strings.Replace(plain, "phases:", "Phases:", 1)+"  extra: 1\n  availabilityProbes: [{selector: {kind: {group: apps, kind: Deployment}}, probes: [{condition: {type: A, status: True}}]}]\n",
		"a.yaml", configMap("a", "first", "  labels: {package-operator.run/package: x}\n  generation: 3\nstatus: {x: 1}\n"))
	p, err := Load(context.Background(), files, namespaced(withConfig(`{"a":1}`)))
	require.NoError(t, err)
	got := p.Warnings.Error()
	for _, want := range []string{
		`spec.Phases: unknown field, dropped. Did you mean "phases"?`, "spec.extra: unknown field, dropped",
		"status: True is not in quotes; it is read as text. Put it in quotes.", "spec.config.a: unknown key, dropped",
		"v1 ConfigMap a: metadata.generation: a package must not set it, dropped", "status: a package must not set it, dropped",
		"metadata.labels[package-operator.run/package]: a package must not set it, dropped",
	} {
		require.Contains(t, got, want)
	}

	if raw := string(p.Phases[0].Objects[0].Object.Raw); strings.Contains(raw, "status") || strings.Contains(raw, "generation") || !strings.Contains(raw, `"package-operator.run/package":"my-shop"`) {
		t.Error(raw)
	}
	require.Equal(t, "True", p.Probes[0].Probes[0].Condition.Status, "unquoted text is read as it stands in the file")
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
		{"bad apiVersion", "apiVersion: a/b/c\nkind: X\nmetadata: {name: a}", namespaced(), `"a/b/c" is not a valid apiVersion`},
		{"no kind", "apiVersion: v1\nmetadata: {name: a}", namespaced(), "kind: Object 'Kind' is missing"},
		{"no name", "apiVersion: v1\nkind: X\nmetadata: {annotations: {package-operator.run/phase: first}}", namespaced(), "Object invalid in a.yaml idx 0 line 3: v1 X: metadata.name: the object has no name"},
		{"number as the name", "apiVersion: v1\nkind: X\nmetadata: {name: 1}", namespaced(), "the name is not a text. Put it in quotes."},
		{"path in the name", configMap("a/b", "first", ""), namespaced(), `"a/b" is not a valid name`},
		{"generateName", meta("generateName: x"), namespaced(), "metadata.generateName: a package cannot find an object again"},
		{"text", "hello", namespaced(), "the document is not an object"},
		{"metadata", "apiVersion: v1\nkind: X\nmetadata: [1]\n", namespaced(), "metadata has to be a mapping"},
		{"uid", meta("uid: x"), namespaced(), "line 7: v1 ConfigMap a: metadata.uid: a package must not set it. Remove it; the API server sets it."},
		{"creationTimestamp", meta("creationTimestamp: '2020-01-01T00:00:00Z'"), namespaced(), "metadata.creationTimestamp: a package must not set it"},
		{"misspelt metadata", "apiVersion: v1\nkind: X\nmetadta: {name: a}", namespaced(), `Object invalid in a.yaml idx 0 line 3: v1 X: metadta: Object 'metadata' is missing, and no object has a field of this name. Did you mean "metadata"?`},
		{"misspelt kind and apiVersion", "apiversion: v1\nkin: X\nmetadata: {name: a}", namespaced(), `Object invalid in a.yaml idx 0 line 1: a: apiversion: Object 'apiVersion' is missing, and no object has a field of this name. Did you mean "apiVersion"?`},
		{"no phase", "apiVersion: v1\nkind: X\nmetadata: {name: a}", namespaced(), "Missing package-operator.run/phase Annotation in a.yaml idx 0 line 1: v1 X a: the object is in no phase. Set it to a phase of the manifest."},
		{"phase misspelt", "apiVersion: v1\nkind: X\nmetadata: {name: a, annotations: {package-operator.run/phse: first}}", namespaced(), "Write it instead of package-operator.run/phse."},
		{"unknown phase", configMap("a", "frist", ""), namespaced(), `Phase name not found in manifest in a.yaml idx 0 line 6: v1 ConfigMap a: metadata.annotations[package-operator.run/phase]: phase "frist". Did you mean "first"?`},
		{"collision mode", annotated("package-operator.run/collision-protection", "none"), namespaced(), `"none" is not a valid mode. Did you mean "None"?`},
		{"condition map", annotated("package-operator.run/condition-map", "Available"), namespaced(), `"Available" is not a mapping. Write one mapping a line: Available => example.com/Available`},
		{"condition map destination", annotated("package-operator.run/condition-map", "'A => B'"), namespaced(), `"B" is not a valid type for a mapped condition`},
		{"condition", annotated("package-operator.run/condition", "config.x"), namespaced(), "The CEL expression in package-operator.run/condition annotation is invalid. in a.yaml idx 0 line 7: v1 ConfigMap a"},
		{"deletion policy", annotated("package-operator.run/deletion-policy", "keep"), namespaced(), `"keep" is not a valid value. Set it to Keep, or remove it.`},
		{"reserved annotation", annotated("package-operator.run/owners", "x"), namespaced(), "a package must not set it. Remove it; the engine sets it."},
		{"reserved label", meta("labels: {package-operator.run/generated: 'true'}"), namespaced(), "a package must not set it. Remove it; the engine sets it."},
		{"annotation that is not a text", annotated("a", "1"), namespaced(), "Annotation invalid in a.yaml idx 0 line 7: v1 ConfigMap a: metadata.annotations.a: the value is not a text. Put it in quotes."},
		{
			"number in a Secret", "apiVersion: v1\nkind: Secret\nmetadata: {name: a, annotations: {package-operator.run/phase: first}}\nstringData:\n  user: a\n  password: 12345678\n  none:", namespaced(),
			"Object invalid in a.yaml idx 0 line 6: v1 Secret a: stringData.password: the value is not a text. Put it in quotes.",
		},
		{
			"mapping in a Secret", "apiVersion: v1\nkind: Secret\nmetadata: {name: a, annotations: {package-operator.run/phase: first}}\nstringData:\n  config.yaml:\n    a: b", namespaced(),
			"Object invalid in a.yaml idx 0 line 5: v1 Secret a: stringData[config.yaml]: the value is not a text. Write it as a block with |.",
		},
		{
			"number in the data of a Secret", "apiVersion: v1\nkind: Secret\nmetadata: {name: a, annotations: {package-operator.run/phase: first}}\ndata:\n  pin: 1234", namespaced(),
			"Object invalid in a.yaml idx 0 line 5: v1 Secret a: data.pin: the value is not a text. Move it to stringData, in quotes, or encode it in base64.",
		},
		{"large annotation", annotated("a", strings.Repeat("x", limits.AnnotationBytes)), namespaced(), fmt.Sprintf("the API server's limit is %d", limits.AnnotationBytes)},
		{"label value", meta("labels: {a: 'b c'}"), namespaced(), `Labels invalid in a.yaml idx 0 line 7: v1 ConfigMap a: metadata.labels.a: "b c" is not a valid label value`},
		{"label key", meta("labels: {'a b': c}"), namespaced(), `"a b" is not a valid key`},
		{"labels", meta("labels: [a]"), namespaced(), "metadata.labels has to be a mapping"},
		{"other namespace", meta("namespace: team-b"), namespaced(), `Object outside the scope of the package in a.yaml idx 0 line 7: v1 ConfigMap team-b/a: metadata.namespace: the object is in the namespace "team-b", the Package in "team-a"`},
		{"bad namespace", meta("namespace: Team"), namespaced(), `"Team" is not a valid namespace`},
		{"cluster-scoped kind", "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: a, annotations: {package-operator.run/phase: first}}", namespaced(), "rbac.authorization.k8s.io/v1 ClusterRole a: kind: ClusterRole is cluster-scoped, and a Package may only bring objects of its own namespace. Install the package as a ClusterPackage (--cluster), or leave the object out."},
		{"definition", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a, annotations: {package-operator.run/phase: first}}", namespaced(), "a CustomResourceDefinition is cluster-scoped, and a Package may only bring objects of its own namespace"},
		{"no namespace in a cluster package", configMap("a", "first", ""), namespaced(cluster), "metadata.namespace: ConfigMap is namespaced, and a ClusterPackage has no namespace of its own. Set metadata.namespace, or spec.defaultNamespace of the ClusterPackage, or in another cluster its spec.targetRef.namespace."},
		{"namespace of a cluster-scoped kind", "apiVersion: v1\nkind: Namespace\nmetadata: {name: a, namespace: b, annotations: {package-operator.run/phase: first}}", namespaced(cluster), "metadata.namespace: Namespace is cluster-scoped"},
		{"twice", configMap("a", "first", "") + "---\n" + configMap("a", "second", ""), namespaced(), "Duplicate Object in a.yaml idx 1 line 11: v1 ConfigMap a: it is in a.yaml idx 0 line 4 as well"},
		{"twice, once with the namespace", configMap("a", "first", "") + "---\n" + configMap("a", "first", "  namespace: team-a\n"), namespaced(), "Duplicate Object"},
		{"large object", configMap("a", "first", "data: {a: "+strings.Repeat("x", limits.ObjectBytes)+"}"), namespaced(), fmt.Sprintf("bytes of JSON; the limit is %d", limits.ObjectBytes)},
		{"syntax", "a: [", namespaced(), "Invalid YAML in a.yaml idx 0 line 1"},
	} {
		got := lines(t, pkg("manifest.yaml", stated(plain), "a.yaml", test.object), test.opts)
		require.Contains(t, got, test.want, test.name)
	}
}

func TestAllProblemsAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	files := pkg(
		"manifest.yaml", plain+"  provider: a b\n  config: {openAPIV3Schema: {type: object, required: [x], properties: {x: {type: string}}}}\n",
		"a.yaml", configMap("a", "frist", ""), "b.yaml", "a: [", "c.yaml.gotmpl", "{{.config.x}}")
	got := lines(t, files, namespaced())
	for _, want := range []string{"spec.provider", `phase "frist"`, "Invalid YAML in b.yaml", "Config invalid: spec.config.x: Required value"} {
		require.Contains(t, got, want)
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
		require.Equal(t, test.want, got, test.files["manifest.yaml"])
	}
}

func TestPackageName(t *testing.T) {
	t.Parallel()
	got := lines(t, pkg("manifest.yaml", plain), namespaced(func(o *Options) { o.Package.Metadata.Name = strings.Repeat("x", 64) }))
	if !strings.Contains(got, "becomes the value of the label package-operator.run/package") || !strings.Contains(got, "at most 63 characters") {
		t.Error(got)
	}
}

// Each problem is short, regardless of the number of names to choose from, and there are no more
// than are shown.
func TestProblemsAreBounded(t *testing.T) {
	t.Parallel()
	phases, objects, labels := "", "", "  labels:\n"
	for i := range limits.PackagePhases {
		phases += fmt.Sprintf(", {name: %s%d}", strings.Repeat("p", 200), i)
	}

	for i := range 3000 {
		objects += configMap(fmt.Sprintf("a%d", i), "none-of-them", "---\n")
	}

	for i := range 30_000 {
		labels += fmt.Sprintf("    l%d: '-'\n", i)
	}

	manifest := strings.Replace(plain, ", {name: second}", phases, 1)
	files := pkg("manifest.yaml", manifest, "a.yaml", objects, "b.yaml", objects, "c.yaml", objects, "d.yaml", configMap("x", "first", labels))
	for _, files := range []Files{files, {"manifest.yaml": []byte(plain), "d.yaml": files["d.yaml"]}} {
		_, err := Load(context.Background(), files, namespaced())
		var problems violation.Violations
		if !errors.As(err, &problems) || len(problems) > limits.Violations+1 {
			t.Fatalf("%d problems", len(problems))
		}
		if n := len(err.Error()); n > 4<<20 {
			t.Errorf("%d bytes of problems", n)
		}
		require.Contains(t, err.Error(), "more problems are not shown", fmt.Sprintf("further ones are not mentioned: %s", err.Error()[max(0, len(err.Error())-300):]))
	}
}
