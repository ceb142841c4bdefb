package loader

import (
	"context"
	"strings"
	"testing"

	"lockstep.run/lockstep/test/require"
)

// Packages without a version are accepted if Package Operator accepts them, with a warning. With a
// version, it is an error.
func TestWithoutVersionAsPackageOperator(t *testing.T) {
	t.Parallel()
	spec := func(more string) Files {
		return pkg("manifest.yaml", plain+more, "a.yaml", configMap("a", "first", ""))
	}
	object := func(more string) Files { return pkg("manifest.yaml", plain, "a.yaml", configMap("a", "first", more)) }
	replaced := func(old, with string) Files {
		return pkg("manifest.yaml", strings.Replace(plain, old, with, 1), "a.yaml", configMap("a", "first", ""))
	}
	hex := strings.Repeat("a", 64)
	probe := func(entry string) Files {
		return spec("  availabilityProbes: [{selector: {kind: {group: '', kind: ConfigMap}}, probes: [" + entry + "]}]\n")
	}

	for _, test := range []struct {
		reason string
		files  Files
		opts   Options
		// problem is the error of a package that states a version. Without a version, the warning
		// contains it.
		problem string
		// want is part of the object, without a version.
		want string
	}{
		{"duplicate key in an object", object("data: {a: '1', a: '2'}\n"), namespaced(), "data.a: the key stands twice", `"data":{"a":"2"}`},
		{"duplicate key in the manifest", replaced("metadata: {name: shop}", "metadata: {name: other, name: shop}"), namespaced(), "metadata.name: the key stands twice", ""},
		{"unknown tag", object("data: {a: !own x}\n"), namespaced(), "the tag !own is not supported", `"data":{"a":"x"}`},
		{"unknown field of the manifest", spec("  x: 1\n"), namespaced(), "spec.x: unknown field", ""},
		{"unknown key of the configuration", spec(""), namespaced(withConfig(`{"x":1}`)), "unknown key", ""},
		{"CEL rule of the configuration", spec("  config: {openAPIV3Schema: {type: object, properties: {size: {type: integer}}, x-kubernetes-validations: [{rule: self.size > 1}]}}\n"), namespaced(withConfig(`{"size":1}`)), "failed rule: self.size > 1", ""},
		{"probe with two checks", probe("{condition: {type: A}, fieldsEqual: {fieldA: .a, fieldB: .b}}"), namespaced(), "2 of condition, fieldsEqual and cel are set", ""},
		{"probe without a check", probe("{}"), namespaced(), "0 of condition, fieldsEqual and cel are set", ""},
		{"unknown scope", replaced("[Namespaced, Cluster]", "[Namespaced, Other]"), namespaced(), `Unsupported value: "Other"`, ""},
		{"phase without a name", replaced("{name: second}", "{}"), namespaced(), "the phase has no name", ""},
		{"unknown platform", spec("  constraints: [{platform: [Other]}, {platformVersion: {name: Other, range: '>1'}}]\n"), namespaced(), `Unsupported value: "Other"`, ""},
		{"empty pattern", spec("  filter: {paths: [{glob: '', expression: 'false'}]}\n"), namespaced(), "no file matches an empty pattern", ""},
		{"repository of two kinds", spec("  repositories: [{file: a, image: b}]\n"), namespaced(), "exactly one of file and image is needed", ""},
		{"dependency that update cannot resolve", spec("  dependencies: [{image: {name: a}}]\n"), namespaced(), "spec.dependencies[0].image.range: Required value", ""},
		{"digest without its algorithm", pkg("manifest.yaml", plain+"  images: [{name: web, image: nginx}]\n", "a.yaml.gotmpl", configMap("a", "first", "data: {a: '{{.images.web}}'}\n"),
			"manifest.lock.yaml", "apiVersion: manifests.package-operator.run/v1alpha1\nkind: PackageManifestLock\nspec: {images: [{name: web, image: nginx, digest: "+hex+"}]}\n"), namespaced(), "does not start with sha256:", "nginx@sha256:" + hex},
		{"mode of collision protection", object("    package-operator.run/collision-protection: Other\n"), namespaced(func(o *Options) { o.CollisionProtection = "None" }), `"Other" is not a valid mode`, ""},
		{"condition that cannot be mapped", object("    package-operator.run/condition-map: A => Example.com/A\n"), namespaced(), "is not a valid type for a mapped condition", ""},
		{"label that is not a text", object("  labels: {a: 1, b: c}\n"), namespaced(), "the value is not a text", `"labels":{"package-operator.run/instance"`},
		{"label of the engine", object("  labels: {package-operator.run/cache: x}\n"), namespaced(), "a package must not set it", `"labels":{"package-operator.run/instance"`},
		{"status", object("status: {a: b}\n"), namespaced(), "status: a package must not set it", ""},
		{"time of creation", object("  creationTimestamp: '2020-01-01T00:00:00Z'\n"), namespaced(), "metadata.creationTimestamp: a package must not set it", ""},
		{"duplicate key in fromYAML", pkg("manifest.yaml", plain, "a.yaml.gotmpl", configMap("a", "first", "data: {a: '{{ (fromYAML \"a: x\\na: z\").a }}'}\n")), namespaced(), "the key stands twice", `"data":{"a":"z"}`},
		{"template defined twice", pkg("manifest.yaml", plain, "a.yaml.gotmpl", "{{define `x`}}1{{end}}"+configMap("a", "first", ""), "b.gotmpl", "{{define `x`}}2{{end}}"), namespaced(), `the template "x" is defined in`, ""},
		{"template next to its output", pkg("manifest.yaml", plain, "a.yaml.gotmpl", configMap("a", "first", ""), "a.yaml", "x"), namespaced(), "the template replaces the file a.yaml", ""},
	} {
		p, err := Load(context.Background(), test.files, test.opts)
		if err != nil {
			t.Errorf("%s, without a version: %v", test.reason, err)
		} else if warnings := p.Warnings.Error(); !strings.Contains(warnings, test.problem) {
			t.Errorf("%s, without a version: no %q in the warnings\n%s", test.reason, test.problem, warnings)
		} else if o := p.Phases[0].Objects[0]; !strings.Contains(string(o.Object.Raw), test.want) || o.CollisionProtection != "Prevent" && test.opts.CollisionProtection != "" || len(o.ConditionMappings) > 0 {
			t.Errorf("%s: %+v %s", test.reason, o, o.Object.Raw)
		}
		if _, err := Load(context.Background(), versioned(test.files), test.opts); err == nil || !strings.Contains(err.Error(), test.problem) {
			t.Errorf("%s, with a version: no %q in\n%v", test.reason, test.problem, err)
		}
	}
}

// An unknown scope allows nothing.
func TestUnknownScopeAllowsNothing(t *testing.T) {
	t.Parallel()
	_, err := Load(context.Background(), pkg("manifest.yaml", strings.Replace(plain, "Namespaced, Cluster", "Namespacd", 1)), namespaced())
	require.ErrorContains(t, err, "the package allows Namespacd only, and this is a Package")
}

// A manifest is the first document of its file.
func TestDocumentsBehindAManifest(t *testing.T) {
	t.Parallel()
	for _, more := range []string{"---\na: 1\n", "---\na: [\n"} {
		p, err := Load(context.Background(), pkg("manifest.yaml", plain+more), namespaced())
		if err != nil || !strings.Contains(p.Warnings.Error(), "the file has 2 documents, not 1; the first one is read") {
			t.Errorf("%q: %v, %+v", more, err, p)
		}
		if _, err := Load(context.Background(), pkg("manifest.yaml", stated(plain)+more), namespaced()); err == nil {
			t.Errorf("%q with a version is accepted", more)
		}
	}
}

// Templates and expressions that fail only with the example configuration are not an error without
// a version.
func TestValidateWithoutTestCases(t *testing.T) {
	t.Parallel()
	for _, files := range []Files{
		pkg("manifest.yaml", plain, "a.yaml.gotmpl", configMap("a", "first", "data: {a: '{{.config.host}}'}\n")),
		pkg("manifest.yaml", plain, "a.yaml.gotmpl", configMap("a", "{{get .config `phase`}}", "")),
		pkg("manifest.yaml", plain, "a.yaml", configMap("a", "first", "    package-operator.run/condition: config.x == 1\n    a: b\n")),
		pkg("manifest.yaml", plain+"  filter: {conditions: [{name: a, expression: config.x}]}\n"),
	} {
		warnings, err := Validate(context.Background(), files)
		if err != nil || !strings.Contains(warnings.Error(), "with the default configuration: ") {
			t.Errorf("%v\n%v", err, warnings)
		}
		if _, err := Validate(context.Background(), versioned(files)); err == nil {
			t.Errorf("%s with a version is accepted", files["manifest.yaml"])
		}
	}

	for _, files := range []Files{
		pkg("manifest.yaml", plain, "a.yaml.gotmpl", "{{if}}"),
		pkg("manifest.yaml", plain, "a.yaml", configMap("a", "first", "    package-operator.run/condition: config.\n")),
	} {
		if _, err := Validate(context.Background(), files); err == nil {
			t.Errorf("what can never be rendered is accepted: %s", files)
		}
	}
}

// As in Package Operator, index returns empty text for missing labels and annotations of a Package.
func TestIndexOfUnsetLabels(t *testing.T) {
	t.Parallel()
	const text = "{{index .package.metadata.labels `x`}}|{{index .package.metadata.annotations `x`}}|{{index .package `metadata` `labels` `x`}}|" +
		"{{hasKey .package.metadata.labels `x`}}|{{dig `metadata` `labels` `x` `none` .package}}|{{index (list 1 2) 1}}|{{index .config `x`}}"

	for _, test := range []struct {
		labels map[string]string
		want   string
	}{
		{nil, "|||false|none|2|<no value>"},
		{map[string]string{"y": "z"}, "<no value>||<no value>|false|none|2|<no value>"},
	} {
		opts := namespaced(func(o *Options) { o.Package.Metadata.Labels = test.labels })
		p, err := Load(context.Background(), pkg("manifest.yaml", plain, "a.yaml.gotmpl", configMap("a", "first", "data: {a: '"+text+"'}\n")), opts)
		require.NoError(t, err)
		require.Contains(t, strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(string(p.Phases[0].Objects[0].Object.Raw)), `"a":"`+test.want+`"`, test.labels)
	}
}
