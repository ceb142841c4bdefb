package loader

import (
	"context"
	"errors"
	"strings"
	"testing"

	"lockstep.run/lockstep/internal/loader/violation"
	"lockstep.run/lockstep/test/require"
)

func TestValidate(t *testing.T) {
	t.Parallel()
	required := "  config: {openAPIV3Schema: {type: object, required: [image], properties: {image: {type: string}}}}\n"
	tests := func(cases string) string { return "test: {template: [" + cases + "]}\n" }
	namespacedOnly := strings.Replace(plain, "Namespaced, Cluster", "Namespaced", 1)
	clusterOnly := strings.Replace(plain, "Namespaced, Cluster", "Cluster", 1)
	image := configMap("a", "first", "data: {i: '{{.config.image}}'}\n")
	for _, test := range []struct {
		reason   string
		files    Files
		problems []string
		warnings []string
	}{
		{"no problem", pkg("manifest.yaml", namespacedOnly, "a.yaml", configMap("a", "first", "")), nil, nil},
		{"a problem in one of two scopes is a warning", pkg("manifest.yaml", plain, "a.yaml", configMap("a", "first", "")), nil,
			[]string{"as a ClusterPackage: ConfigMap is namespaced, and a ClusterPackage has no namespace of its own"}},
		{"a problem in both scopes is a problem",
			pkg("manifest.yaml", plain, "a.yaml", strings.Replace(configMap("a", "frist", ""), "v1\nkind: ConfigMap", "example.com/v1\nkind: X", 1)),
			[]string{`phase "frist"`}, nil},
		{"one problem reports that cluster-scoped objects and the scope Namespaced exclude each other",
			pkg("manifest.yaml", plain, "a.yaml", configMap("a", "first", ""), "b.yaml", strings.NewReplacer("ConfigMap", "Namespace").Replace(configMap("b", "first", "")+"---\n"+configMap("c", "first", ""))),
			[]string{"spec.scopes: v1 Namespace b is cluster-scoped"}, nil},
		{"or a warning, if it can be installed as a ClusterPackage",
			pkg("manifest.yaml", plain, "a.yaml", configMap("a", "first", "  namespace: x\n"), "b.yaml", strings.NewReplacer("ConfigMap", "Namespace").Replace(configMap("b", "first", "")+"---\n"+configMap("c", "first", ""))),
			nil, []string{"spec.scopes: as a Package: v1 Namespace b is cluster-scoped"}},
		{"a package that fails in each scope for another reason can be installed in none",
			pkg("manifest.yaml", plain+"  permissions: {aggregateTo: [view]}\n", "a.yaml", configMap("a", "first", "")),
			[]string{"spec.permissions.aggregateTo: a ClusterRole is cluster-scoped", "ConfigMap is namespaced"}, nil},
		{"a namespace in a namespaced package fits one namespace only", pkg("manifest.yaml", namespacedOnly, "a.yaml", configMap("a", "first", "  namespace: x\n")), nil,
			[]string{`the package can be installed in the namespace "x" only`}},
		{"a ClusterPackage can name the namespace of objects that name none", pkg("manifest.yaml", clusterOnly, "a.yaml", configMap("a", "first", "")), nil,
			[]string{"ConfigMap names no namespace: a ClusterPackage of the package needs spec.defaultNamespace, or in another cluster spec.targetRef.namespace"}},
		{"it can in a test case as well",
			pkg("manifest.yaml", clusterOnly+tests("{name: good, context: {package: {metadata: {name: x}}}}"), "a.yaml", configMap("a", "first", "")), nil,
			[]string{"ConfigMap names no namespace"}},
		{"without a test case and without defaults, templates are not rendered",
			pkg("manifest.yaml", namespacedOnly+required, "a.yaml.gotmpl", image, "b.yaml", configMap("b", "frist", "")), []string{`phase "frist"`},
			[]string{"templates were not rendered, because these have no default: spec.config.image. Add a test case"}},
		{"warnings of the manifest are shown with problems, which they can explain",
			pkg("manifest.yaml", namespacedOnly+"  version: 1.0.0\n  config: {openAPIV3Schema: {type: object, properties: {n: {type: integer, default: 1}}}}\n", "a.yaml.gotmpl", configMap("a", "first", "data: {i: '{{.config.n}}'}\n")),
			[]string{`map has no entry for key "n"`}, []string{"the key n is a boolean in YAML 1.1; it is read as false"}},
		{"test cases are rendered",
			pkg("manifest.yaml", namespacedOnly+required+tests("{name: good, context: {package: {metadata: {name: x, namespace: ns}}, config: {image: z}}}"), "a.yaml.gotmpl", image),
			nil, nil},
		{"each test case; the only scope of the package counts, and not the namespace that templates see",
			pkg("manifest.yaml", namespacedOnly+required+"  version: 1.0.0\n"+tests("{name: bare, context: {config: {image: z}}}, {name: bad, context: {package: {metadata: {namespace: ns}}, config: {imag: z}}}"), "a.yaml.gotmpl", image),
			[]string{
				`Config invalid in manifest.yaml idx 0 line 9: test.template[1].context.config.imag: unknown key. Did you mean "image"?`,
				"test.template[1].context.config.image: Required value",
			},
			nil},
		{"an object in a JSON file is named, other JSON is not",
			pkg("manifest.yaml", namespacedOnly, "a.yaml", configMap("a", "first", ""), "b.json", `{"apiVersion":"v1","kind":"ConfigMap"}`, "dashboard.json", `{"kind":"x"}`),
			nil, []string{"Not supported by this version in b.json: the object in a .json file is not installed. Rename it to b.yaml"}},
		{"images of test cases are not those of the lock",
			pkg("manifest.yaml", namespacedOnly+"  images: [{name: web, image: x}]\n", "manifest.lock.yaml", "apiVersion: manifests.package-operator.run/v1alpha1\nkind: PackageManifestLock\nspec: {images: [{name: web, image: x, digest: 'sha256:"+strings.Repeat("a", 64)+"'}]}\n",
				"a.yaml.gotmpl", configMap("a", "first", "data: {i: '{{.images.web}}'}\n")),
			nil, nil},
		{"unknown fields are problems, and so are unsupported ones",
			pkg("manifest.yaml", namespacedOnly+"  version: 1.0.0\n  x: 1\ntest: {kubeconform: {kubernetesVersion: v1.30.0}}\n"), []string{"spec.x: unknown field"}, nil},
		{"no manifest, yet the rest is checked", pkg("a.yaml", "a: ["), []string{"PackageManifest not found", "Invalid YAML in a.yaml"}, nil},
	} {
		warnings, err := Validate(context.Background(), test.files)
		var problems violation.Violations
		errors.As(err, &problems)
		check := func(what string, got violation.Violations, want []string) {
			if len(got) != len(want) {
				t.Errorf("%s: %d %s, want %d:\n%s", test.reason, len(got), what, len(want), got)
			}
			for _, w := range want {
				require.Contains(t, got.Error(), w, test.reason)
			}
		}
		check("problems", problems, test.problems)
		check("warnings", warnings, test.warnings)
	}
}

func TestPreview(t *testing.T) {
	t.Parallel()
	files := pkg("manifest.yaml", plain+"  config: {openAPIV3Schema: {type: object, properties: {name: {type: string, default: d}}}}\n"+
		"test: {template: [{name: one, context: {package: {metadata: {name: x, namespace: ns}}, config: {name: first}}}, {name: two, context: {package: {metadata: {name: z, namespace: ns}}}}]}\n",
		"a.yaml.gotmpl", configMap("{{.config.name}}", "first", ""))

	for _, test := range []struct {
		opts                    PreviewOptions
		name, namespace, object string
	}{
		{PreviewOptions{}, "x", "ns", `"name":"first"`},
		{PreviewOptions{TestCase: "two"}, "z", "ns", `"name":"d"`},
		{PreviewOptions{Config: []byte(`{"name":"own"}`)}, "x", "ns", `"name":"own"`},
	} {
		p, shown, err := Preview(context.Background(), files, test.opts)
		if err != nil || shown.Metadata.Name != test.name || shown.Metadata.Namespace != test.namespace || !strings.Contains(string(p.Phases[0].Objects[0].Object.Raw), test.object) {
			t.Errorf("%+v: %v, %+v", test.opts, err, shown)
		}
	}

	if _, _, err := Preview(context.Background(), files, PreviewOptions{TestCase: "tow"}); err == nil || !strings.Contains(err.Error(), `no test case "tow". Did you mean "two"?`) {
		t.Error(err)
	}
	if _, shown, err := Preview(context.Background(), files, PreviewOptions{Cluster: true}); err == nil || shown.Metadata.Namespace != "" {
		t.Error("ConfigMaps need a namespace in a ClusterPackage", err)
	}
	if _, shown, err := Preview(context.Background(), pkg("manifest.yaml", plain, "a.yaml", configMap("a", "first", "")), PreviewOptions{}); err != nil || shown.Metadata.Name != "name" || shown.Metadata.Namespace != "namespace" {
		t.Error(err, shown)
	}
}

// The output of templates is visible in the form of fixtures.
func TestRenderedCases(t *testing.T) {
	t.Parallel()
	object := func(name, condition string) string {
		more := ""
		if condition != "" {
			more = "    package-operator.run/condition: '" + condition + "'\n"
		}
		return configMap(name, "first", more)
	}

	rendered := func(text string) string { return strings.ReplaceAll(text, "{{.config.size}}", "7") }
	comment := "# a comment that stays\n"
	multi := comment + object("a", "config.size == 7.0") + "---\n" + object("b", "config.size == 8.0") + "---\n# second\n" + object("c-{{.config.size}}", "")
	leading := "---\n---\n" + object("d", "false") + "--- # with a comment\n" + object("e", "")
	first := object("f", "false") + "---\n" + object("g", "")
	files := pkg("manifest.yaml", strings.Replace(plain, "Namespaced, Cluster", "Namespaced", 1)+"  config: {openAPIV3Schema: {type: object, properties: {size: {type: integer}}}}\n"+
		"  filter: {paths: [{glob: 'out/**', expression: 'false'}]}\n"+
		"test: {template: [{name: one, context: {package: {metadata: {name: x, namespace: ns}}, config: {size: 7}}}]}\n",
		"multi.yaml.gotmpl", multi, "leading.yaml.gotmpl", leading, "first.yml.gotmpl", first, "gone.yaml.gotmpl", object("x", "false"), "empty.yaml.gotmpl", "{{if false}}x{{end}}\n",
		"static.yaml", object("static", ""), "_helpers.gotmpl", "{{define `x`}}{{end}}", "out/x.yaml.gotmpl", object("y", ""), "notes.txt.gotmpl", "size is {{.config.size}}\n")

	var got []Case
	if _, err := Inspect(context.Background(), files, func(c Case) { got = append(got, c) }); err != nil {
		t.Fatal(err)
	}

	want := Files{
		"multi.yaml":   []byte(comment + object("a", "config.size == 7.0") + "---\n# second\n" + object("c-7", "")),
		"leading.yaml": []byte("---\n--- # with a comment\n" + object("e", "")),
		"first.yml":    []byte(object("g", "")),
		"notes.txt":    []byte(rendered("size is {{.config.size}}\n")),
	}
	if len(got) != 1 || got[0].Name != "one" {
		t.Fatal(got)
	}

	require.Equal(t, want, got[0].Rendered)
}

func TestFilters(t *testing.T) {
	t.Parallel()
	files := pkg("manifest.yaml", plain+"  filter:\n    conditions: [{name: yes, expression: 'true'}, {name: no, expression: '\"x\" == config.name'}]\n"+
		"    paths: [{glob: 'skip/**', expression: cond.no}]\n  config: {openAPIV3Schema: {type: object, properties: {name: {type: string, default: z}}}}\n",
		"skip/a.yaml", "this need not be an object", "skip/b.yaml.gotmpl", "{{fail `nor render`}}",
		"a.yaml", configMap("a", "first", "    package-operator.run/condition: cond.no\n")+"---\n"+configMap("a", "second", "    package-operator.run/condition: '!cond.no'\n"),
		"b.yaml", "kind: X # dropped before it is checked\nmetadata: {annotations: {package-operator.run/condition: 'false'}}\n",
	)
	// "yes" is a word of YAML 1.1. The manifest requires a text, and reads it as one.
	if p, err := Load(context.Background(), files, namespaced()); err != nil || objectsIn(p) != 1 || p.Phases[0].Name != "second" {
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
	p, err := Load(context.Background(), files, namespaced())
	require.NoError(t, err)
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
		{"no digest", lock("{name: web, image: 'nginx:1.2', digest: latest}", ""), `"latest" is not a digest`},
		{"empty", lock("{name: web, image: 'nginx:1.2'}", ""), "PackageManifestLock invalid in manifest.lock.yaml idx 0 line 5: spec.images[0].digest: Required value"},
		{"other kind", "kind: X", "unknown GVK in manifest.lock.yaml"},
	} {
		files["manifest.lock.yaml"] = []byte(test.lock)
		require.Contains(t, lines(t, files, namespaced()), test.want, test.name)
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
		if err != nil || p.Manifest.Name != want || objectsIn(p) != 1 {
			t.Errorf("%q: %v", name, err)
		}
	}

	for name, want := range map[string]string{
		"wbe": `Component not found [wbe]: component "wbe". Did you mean "web"?`, "zzzz": "The package has: broken, nested, web.", "a/b": "Invalid component path",
		"nested": "Nesting multi-component packages not allowed in manifest.yaml idx 0 line 7 [nested]", "broken": "Invalid YAML in manifest.yaml idx 0 line 1 [broken]",
	} {
		require.Contains(t, lines(t, files, of(name)), want, name)
	}

	require.Contains(t, lines(t, pkg("manifest.yaml", plain, "components/web/x.yaml", configMap("x", "first", "")), of("web")), "Components not enabled")
	if p, err := Load(context.Background(), pkg("manifest.yaml", plain, "components/web/x.yaml", configMap("x", "first", "")), of("")); err != nil || objectsIn(p) != 1 {
		t.Error("without components a folder of that name is a folder", err)
	}

	files["components/stray.txt"] = nil
	_, err := Validate(context.Background(), files)
	for _, want := range []string{"[nested]", "[broken]", "may only contain folders and dot files in components/stray.txt"} {
		require.ErrorContains(t, err, want)
	}
}
