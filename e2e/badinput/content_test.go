package badinput_test

import (
	"fmt"
	"strings"
	"testing"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/internal/limits"
)

// packageOf returns a package with a valid manifest, one phase, and the given files.
func packageOf(files harness.Files) harness.Files {
	all := harness.Files{"manifest.yaml": harness.Manifest("bad", []string{"deploy"}, "")}
	for name, content := range files {
		all[name] = content
	}
	return all
}

// never is a ConfigMap that must not be written.
func never(name string) string { return harness.ConfigMap("never-"+name, "deploy", "v1") }

func refuses(name, reason string, files harness.Files, texts ...string) row {
	return row{name: name, files: files, condition: "Invalid", status: "True", reason: reason, texts: texts, validate: texts}
}

// contentRows are packages that are wrong in themselves.
func contentRows() []row {
	scoped := func(scope string) string {
		return strings.Replace(harness.Manifest("bad", []string{"deploy"}, ""), "[Cluster, Namespaced]", scope, 1)
	}
	namespaced := scoped("[Namespaced]")
	return []row{
		pullRow("wrong image: the tag is not there", func(env *harness.Env) string { return env.Registry() + "/good:nowhere" }, "good:nowhere", "not found", "Check the name and the tag"),
		pullRow("wrong image: the host is not there", func(*harness.Env) string { return "registry.invalid/shop:v1" }, "registry.invalid", "registry unreachable", "Check the host"),
		refuses("manifest with a typo in a value", "LoadError",
			packageOf(harness.Files{"manifest.yaml": strings.Replace(harness.Manifest("bad", []string{"deploy"}, "  version: 1.0.0\n"), "Namespaced", "Namespacd", 1), "never.yaml": never("typo")}),
			"manifest.yaml", "spec.scopes", "Namespacd", `"Namespaced"`),
		refuses("manifest with a typo in the YAML", "LoadError",
			packageOf(harness.Files{"manifest.yaml": harness.Manifest("bad", []string{"deploy"}, "") + " availabilityProbes: [\n", "never.yaml": never("yaml")}),
			"manifest.yaml", "Invalid YAML", "did not find expected key"),
		refuses("unknown field where spec.version is stated", "LoadError",
			packageOf(harness.Files{"manifest.yaml": harness.Manifest("bad", []string{"deploy"}, "  version: 1.0.0\n  availabilityProbe: []\n"), "never.yaml": never("field")}),
			"manifest.yaml", "availabilityProbe", `"availabilityProbes"`),
		{
			name: "unknown field where no spec.version is stated: dropped and named", condition: "Unpacked", status: "True", reason: "UnpackSuccess",
			files:    packageOf(harness.Files{"manifest.yaml": harness.Manifest("bad", []string{"deploy"}, "  availabilityProbe: []\n"), "first.yaml": harness.ConfigMap("first-field", "deploy", "v1")}),
			texts:    []string{"manifest.yaml", "availabilityProbe"},
			validate: []string{"manifest.yaml", "availabilityProbe", `"availabilityProbes"`},
			valid:    true,
			after:    func(t *testing.T, env *harness.Env, ns string) { env.WaitAvailable(t, ns, "bad") },
		},
		refuses("unknown phase", "ObjectInvalid",
			packageOf(harness.Files{"never.yaml": harness.ConfigMap("never-phase", "deplyo", "v1")}),
			"never.yaml", "never-phase", "deplyo", `"deploy"`),
		{
			name: "scope that the manifest does not allow", files: packageOf(harness.Files{"manifest.yaml": scoped("[Cluster]"), "never.yaml": never("scope")}),
			condition: "Invalid", status: "True", reason: "LoadError", texts: []string{"unsupported scope", "Cluster", "ClusterPackage"},
		},
		refuses("cluster-scoped object in a namespaced package", "ObjectInvalid",
			packageOf(harness.Files{
				"manifest.yaml": namespaced,
				"role.yaml":     "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: never-role\n  annotations: {package-operator.run/phase: deploy}\nrules: []\n",
				"never.yaml":    never("cluster-scoped"),
			}), "ClusterRole", "never-role", "role.yaml", "ClusterPackage"),
		{
			name: "another namespace", condition: "Invalid", status: "True", reason: "ObjectInvalid",
			files: packageOf(harness.Files{
				"manifest.yaml": namespaced, "never.yaml": never("here"),
				"other.yaml": strings.Replace(never("there"), "  name:", "  namespace: default\n  name:", 1),
			}),
			texts: []string{"other.yaml", "never-there", `"default"`, "Remove metadata.namespace"},
			// In the namespace default the package could be installed.
			validate: []string{"warning", "other.yaml", "never-there", `"default"`, "Remove metadata.namespace"}, valid: true,
		},
		refuses("an object twice", "ObjectInvalid",
			packageOf(harness.Files{"one.yaml": never("twice"), "two.yaml": never("twice")}), "never-twice", "one.yaml", "two.yaml"),
		refuses("CEL of a probe that does not compile", "LoadError",
			packageOf(harness.Files{
				"manifest.yaml": harness.Manifest("bad", []string{"deploy"}, "  availabilityProbes:\n  - selector: {kind: {group: \"\", kind: ConfigMap}}\n    probes:\n    - cel: {rule: 'self.data.ready ==', message: not ready}\n"),
				"never.yaml":    never("cel"),
			}), "manifest.yaml", "spec.availabilityProbes[0].probes[0].cel.rule", "Syntax error"),
		refuses("CEL of a condition that does not compile", "ObjectInvalid",
			packageOf(harness.Files{"never.yaml": strings.Replace(never("condition"), "  annotations:\n", "  annotations:\n    package-operator.run/condition: 'environment.kubernetes.'\n", 1)}),
			"never.yaml", "never-condition"),
		refuses("template that does not parse", "TemplateError",
			packageOf(harness.Files{"never.yaml.gotmpl": strings.Replace(never("template"), `value: "v1"`, `value: {{ .config.value | quot }}`, 1)}),
			"never.yaml.gotmpl", "quot"),
		refuses("YAML alias bomb", "LoadError", packageOf(harness.Files{"bomb.yaml": aliasBomb(), "never.yaml": never("aliases")}),
			"bomb.yaml", fmt.Sprint(limits.DocumentNodes)),
		{
			name: "manifest.yaml of 100 MB", condition: "Unpacked", status: "False", reason: "ImagePullBackOff",
			files: packageOf(harness.Files{
				"manifest.yaml": harness.Manifest("bad", []string{"deploy"}, "") + "# " + strings.Repeat("x", 100_000_000) + "\n", "never.yaml": never("large"),
			}),
			texts:    []string{"limit exceeded", "manifest.yaml", fmt.Sprintf("the limit is %d", limits.FileBytes), "Leave it out or split it."},
			validate: []string{"manifest.yaml", fmt.Sprint(limits.FileBytes)},
		},
		refuses("manifest.yaml of 2 MB", "LoadError", packageOf(harness.Files{
			"manifest.yaml": harness.Manifest("bad", []string{"deploy"}, "") + "# " + strings.Repeat("x", 2_000_000) + "\n", "never.yaml": never("larger"),
		}), "manifest.yaml", fmt.Sprint(limits.ManifestBytes)),
	}
}

func pullRow(name string, image func(*harness.Env) string, texts ...string) row {
	return row{
		name: name, image: func(_ *testing.T, env *harness.Env) string { return image(env) },
		condition: "Unpacked", status: "False", reason: "ImagePullBackOff", texts: texts,
	}
}

// aliasBomb is the billion laughs in YAML: ten levels of ten aliases each.
func aliasBomb() string {
	var b strings.Builder
	b.WriteString("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: never-bomb\n  annotations: {package-operator.run/phase: deploy}\ndata:\n  a0: &a0 lol\n")
	for i := 1; i < 10; i++ {
		fmt.Fprintf(&b, "  a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	return b.String()
}
