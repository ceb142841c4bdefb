package loader

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"pgregory.net/rapid"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/violation"
	"lockstep.run/lockstep/test/imagetest"
	"lockstep.run/lockstep/test/require"
)

// pkg makes the files of a package from pairs of path and content.
func pkg(pairs ...string) Files {
	f := Files{}
	for i := 0; i < len(pairs); i += 2 {
		f[pairs[i]] = []byte(pairs[i+1])
	}
	return f
}

// objectsIn counts the objects of all phases.
func objectsIn(p *Package) (n int) {
	for _, phase := range p.Phases {
		n += len(phase.Objects)
	}
	return n
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

// stated adds a version to a manifest, so that the package is checked strictly.
func stated(manifest string) string {
	return strings.TrimRight(manifest, "\n") + "\n  version: 1.0.0\n"
}

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
	require.NoError(t, err)
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

	if i != len(want) || objectsIn(p) != i || len(p.Warnings) != 0 || len(p.Template().AvailabilityProbes) != 1 || p.Probes[0].Probes[0].Condition.Status != "True" {
		t.Error(i, p.Warnings, p.Probes)
	}

	wantLabels := map[string]string{
		"package-operator.run/package": "my-shop", "package-operator.run/instance": "my-shop",
		"package-operator.run/version": "1.2.3_build.4", "package-operator.run/provider": "ACME",
	}
	require.Equal(t, wantLabels, p.Labels)
}

// lines returns the violations of loading, one per line.
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

func TestDefinitionsOfThePackageItself(t *testing.T) {
	t.Parallel()
	crd := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a, annotations: {package-operator.run/phase: first}}\n" +
		"spec: {group: example.com, scope: Namespaced, names: {kind: Shop}}\n"

	shop := func(namespace, phase string) string {
		return fmt.Sprintf("apiVersion: example.com/v1\nkind: Shop\nmetadata: {name: x, namespace: %s, annotations: {package-operator.run/phase: %s}}\n", namespace, phase)
	}
	files := pkg("manifest.yaml", plain, "a.yaml", crd, "b.yaml", shop("''", "second"))
	require.Contains(t, lines(t, files, namespaced(cluster)), "Shop is namespaced, and a ClusterPackage has no namespace of its own")

	p, err := Load(context.Background(), pkg("manifest.yaml", plain, "a.yaml", crd, "b.yaml", shop("x", "second")), namespaced(cluster))
	if err != nil || len(p.Warnings) != 0 {
		t.Error(err, p)
	}
}

func TestTemplatesThatRenderNonsense(t *testing.T) {
	t.Parallel()
	files := pkg("manifest.yaml", plain, "b.yaml.gotmpl", "a: {{ `[` }}\n")
	got := lines(t, files, namespaced())
	if !strings.Contains(got, "Invalid YAML in b.yaml.gotmpl idx 0: did not find expected node content") || !strings.Contains(got, "(line 1 of the template's output)") {
		t.Error(got)
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
	require.Contains(t, lines(t, pkg("manifest.yaml", plain, "a.yaml", b.String()), namespaced()), fmt.Sprintf("the objects have more than %d bytes of JSON", limits.PackageBytes))
}

// Objects are counted over all files.
func TestObjectsAreCountedTogether(t *testing.T) {
	t.Parallel()
	files := pkg("manifest.yaml", plain)
	perFile := limits.PackageObjects/10 + 1
	for f := range 10 {
		var b bytes.Buffer
		for i := range perFile {
			fmt.Fprintf(&b, configMap(fmt.Sprintf("a%d-%%d", f), "first", "")+"---\n", i)
		}
		files[fmt.Sprintf("%d.yaml", f)] = b.Bytes()
	}

	want := fmt.Sprintf("the package has more than %d objects", limits.PackageObjects)
	require.Contains(t, lines(t, files, namespaced()), want)
}

// The same input gives the same bytes, regardless of the order of Go's maps.
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

// An object does not keep its document in memory: twenty thousand of them fit into little memory
// while they are collected.
func TestObjectsKeepNoDocuments(t *testing.T) {
	files := pkg("manifest.yaml", plain)
	for f := range 4 {
		var b bytes.Buffer
		for i := range 5000 {
			b.WriteString(configMap(fmt.Sprintf("a%d-%d", f, i), "first", "") + "---\n")
		}
		files[fmt.Sprintf("%d.yaml", f)] = b.Bytes()
	}

	grown := peak(func() {
		if _, err := Load(context.Background(), files, namespaced()); err != nil {
			t.Fatal(err)
		}
	})
	if grown > 100<<20 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
}

// The examples of the repository are valid, and are rolled out as their READMEs describe.
func TestExamples(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		folder  string
		opts    PreviewOptions
		warning string
		want    map[string]int
	}{
		{"format", PreviewOptions{}, "as a ClusterPackage", map[string]int{"phase-1": 4, "phase-2": 2, "phase-3": 3}},
		{"operator/cluster", PreviewOptions{}, "", map[string]int{"crds": 2, "rbac": 3, "deploy": 3, "config": 1}},
		{"operator/namespaced", PreviewOptions{}, "", map[string]int{"rbac": 3, "deploy": 3}},
		{"operator/namespaced", PreviewOptions{TestCase: "with-cache"}, "", map[string]int{"rbac": 3, "deploy": 3, "config": 1}},
	} {
		files, err := ReadFolder("../../examples/" + test.folder)
		require.NoError(t, err)
		warnings, err := Validate(context.Background(), files)
		if err != nil {
			t.Errorf("%s: %v", test.folder, err)
		}
		for _, w := range warnings {
			if test.warning == "" || !strings.Contains(w.String(), test.warning) {
				t.Errorf("%s: %s", test.folder, w)
			}
		}
		p, _, err := Preview(context.Background(), files, test.opts)
		if err != nil {
			t.Errorf("%s: %v", test.folder, err)
			continue
		}
		got := map[string]int{}
		for _, phase := range p.Phases {
			got[phase.Name] = len(phase.Objects)
		}
		require.Equal(t, test.want, got, test.folder)
	}
}

var update = flag.Bool("update", false, "rewrite the golden files")

// The repository has the rendered example, because a change of it is a change for every installed
// package.
func TestGolden(t *testing.T) {
	t.Parallel()
	files, err := ReadFolder("../../examples/operator/cluster")
	require.NoError(t, err)
	p, _, err := Preview(context.Background(), files, PreviewOptions{TestCase: "one-replica"})
	require.NoError(t, err)
	var got bytes.Buffer
	encoder := json.NewEncoder(&got)
	encoder.SetIndent("", "  ")
	require.NoError(t, encoder.Encode(map[string]any{"labels": p.Labels, "config": p.Config, "template": p.Template()}))
	const golden = "testdata/operator-cluster.json"
	if *update {
		require.NoError(t, os.WriteFile(golden, got.Bytes(), 0o600))
	}

	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), got.String())
}

// TestPanicOverAFile checks that a panic in one of the goroutines that read files becomes an error
// of the package.
func TestPanicOverAFile(t *testing.T) {
	t.Parallel()
	const text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  annotations:\n    package-operator.run/condition: \"true\"\n    package-operator.run/phase: x\n"
	files := Files{"a.yaml": nil, "b.yaml": []byte(text), "c.yaml": []byte(text)}
	r := &reader{opts: &Options{}, condition: func(string) (bool, error) { panic(errors.New("a defect")) }}
	defer func() {
		caught, _ := recover().(*panics.Error)
		if caught == nil || !strings.HasPrefix(caught.Error(), "reading b.yaml failed by a defect") {
			t.Errorf("the caller gets %v", caught)
		}
	}()
	r.read(t.Context(), files)
}

func TestBuild(t *testing.T) {
	t.Parallel()
	files := pkg("manifest.yaml", plain, "a/b/c.yaml", "c", "a.yaml", "a", ".git/config", "x", "a/.hidden", "x", "empty", "")
	opts := BuildOptions{Labels: map[string]string{"l": "v"}, Annotations: map[string]string{"a": "v"}}
	img, err := Build(files, opts)
	require.NoError(t, err)
	layers, err := img.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatal(layers, err)
	}
	if err := validate.Layer(layers[0]); err != nil {
		t.Error(err)
	}

	digest, err := img.Digest()
	require.NoError(t, err)
	again, err := Build(maps.Clone(files), opts)
	require.NoError(t, err)
	if d, err := again.Digest(); d != digest || err != nil {
		t.Error("the digest differs from build to build", err)
	}

	want := pkg("manifest.yaml", plain, "a/b/c.yaml", "c", "a.yaml", "a", "empty", "")
	require.Equal(t, want, imagetest.Files(t, img), "the files of the image")
	config, err := img.ConfigFile()
	if err != nil || config.OS != "linux" || config.Architecture != "amd64" || config.Config.Labels["l"] != "v" || !config.Created.IsZero() {
		t.Errorf("%v %+v", err, config)
	}

	manifest, err := img.Manifest()
	if err != nil || manifest.MediaType != types.OCIManifestSchema1 || len(manifest.Layers) != 1 || manifest.Layers[0].MediaType != types.OCILayer || manifest.Annotations["a"] != "v" {
		t.Errorf("%v %+v", err, manifest)
	}
}

func TestBuildDigest(t *testing.T) {
	t.Parallel()
	img, err := Build(pkg("manifest.yaml", plain), BuildOptions{})
	require.NoError(t, err)
	layers, err := img.Layers()
	require.NoError(t, err)
	// The digest of the uncompressed layer depends only on the files.
	const want = "sha256:5793922428092905f47fe39873c7a5d0b5f8e5409f79189f21f75ce8e5923153"
	if h, err := layers[0].DiffID(); err != nil || h.String() != want {
		t.Errorf("the layer is %s (%v)", h, err)
	}
}
