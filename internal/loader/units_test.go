package loader

import (
	"context"
	"strings"
	"testing"

	"lockstep.run/lockstep/test/require"
)

func TestFilters(t *testing.T) {
	t.Parallel()
	files := pkg("manifest.yaml", plain+"  filter:\n    conditions: [{name: yes, expression: 'true'}, {name: no, expression: '\"x\" == config.name'}]\n"+
		"    paths: [{glob: 'skip/**', expression: cond.no}]\n  config: {openAPIV3Schema: {type: object, properties: {name: {type: string, default: z}}}}\n",
		"skip/a.yaml", "this need not be an object", "skip/b.yaml.gotmpl", "{{fail `nor render`}}",
		"a.yaml", configMap("a", "first", "    package-operator.run/condition: cond.no\n")+"---\n"+configMap("a", "second", "    package-operator.run/condition: '!cond.no'\n"),
		"b.yaml", "kind: X # dropped before it is checked\nmetadata: {annotations: {package-operator.run/condition: 'false'}}\n",
	)
	// "yes" is a word of YAML 1.1. The manifest requires a text, and reads it as one.
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
