package docs_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/violation"
	"lockstep.run/lockstep/internal/probes"
	"lockstep.run/lockstep/test/require"
)

// smallManifest is completed with a page's part of a manifest.
const smallManifest = `
apiVersion: manifests.package-operator.run/v1alpha1
kind: PackageManifest
metadata: {name: shop}
spec:
  version: 1.0.0
  scopes: [Cluster]
  phases: [{name: crds}, {name: deploy}]
`

const smallObject = `
apiVersion: v1
kind: ConfigMap
metadata:
  name: shop
  namespace: default
  annotations: {package-operator.run/phase: deploy}
`

// validate loads a small package with the part of it that a page shows.
func validate(t *testing.T, b block) {
	t.Helper()
	manifest, object := parse(t, b, smallManifest), smallObject
	if b.verb == "object" {
		object = b.text
	} else {
		merge(manifest, parse(t, b, b.text))
	}
	text, err := yaml.Marshal(manifest)
	require.NoError(t, err)
	files := loader.Files{"manifest.yaml": text, "object.yaml": []byte(object), "icon.png": nil}
	if images, ok := manifest["spec"].(map[string]any)["images"].([]any); ok {
		files["manifest.lock.yaml"] = lockFor(t, images)
	}
	_, err = loader.Validate(context.Background(), files)
	var problems violation.Violations
	if errors.As(err, &problems) || err != nil {
		t.Errorf("%s: %v\n%s", b, err, b.text)
	}
}

func lockFor(t *testing.T, images []any) []byte {
	t.Helper()
	for i := range images {
		image := maps.Clone(images[i].(map[string]any))
		image["digest"] = "sha256:" + strings.Repeat("0123456789abcdef", 4)
		images[i] = image
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "manifests.package-operator.run/v1alpha1", "kind": "PackageManifestLock",
		"metadata": map[string]any{"name": "shop"}, "spec": map[string]any{"images": images},
	})
	require.NoError(t, err)
	return text
}

func parse(t *testing.T, b block, text string) map[string]any {
	t.Helper()
	out := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	return out
}

// merge copies the values of from into a map, recursively. Values of from win.
func merge(into, from map[string]any) {
	for key, value := range from {
		child, isMap := value.(map[string]any)
		old, wasMap := into[key].(map[string]any)
		if isMap && wasMap {
			merge(old, child)
			continue
		}
		into[key] = value
	}
}

// packageSpec lets the API server check a part of a Package. Without fields of a ClusterPackage, it
// checks a namespaced Package.
func (r *runner) packageSpec(t *testing.T, b block) {
	t.Helper()
	obj := map[string]any{
		"apiVersion": "package-operator.run/v1alpha1", "kind": "ClusterPackage",
		"metadata": map[string]any{"name": "shop"}, "spec": map[string]any{"image": registryName + "/shop:v1"},
	}
	if b.argument == "namespaced" {
		obj["kind"] = "Package"
		obj["metadata"].(map[string]any)["namespace"] = "default"
	}
	merge(obj, parse(t, b, b.text))
	text, err := yaml.Marshal(obj)
	require.NoError(t, err)
	r.apply(t, b, string(text))
}

// apply lets the API server check objects, and refuse unknown fields. It is one request, because
// another page can delete an object of the same name.
func (r *runner) apply(t *testing.T, b block, text string) {
	t.Helper()
	file, err := os.CreateTemp(t.TempDir(), "*.yaml")
	require.NoError(t, err)
	if _, err := file.WriteString(text); err != nil {
		t.Fatal(err)
	}
	file.Close()
	if out, code := r.run(t, "kubectl apply --server-side --force-conflicts --dry-run=server --validate=strict -f "+file.Name()); code != 0 {
		t.Errorf("%s: the API server answers:\n%s\nto\n%s", b, strings.Join(out, "\n"), text)
	}
}

var workloads = map[string]bool{"deployment": true, "statefulset": true, "daemonset": true, "replicaset": true}

// recorded are objects as they were in a cluster.
type recorded struct {
	// Ready have to be true, Unready anything else.
	Ready   []map[string]any `json:"ready"`
	Unready []map[string]any `json:"unready"`
}

// probe evaluates a recipe on recorded objects. Recipes for workloads have to equal the
// probes that init and kickstart write.
func probe(t *testing.T, b block) {
	t.Helper()
	if workloads[b.argument] {
		if _, recipe := probes.Recipe(b.argument); b.text != recipe {
			t.Errorf("%s: it should be\n%s", b, recipe)
		}
	}
	var entries []corev1alpha1.ObjectSetProbe
	if err := yaml.UnmarshalStrict([]byte(b.text), &entries); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	set, err := probes.Compile(entries)
	if err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	data, err := os.ReadFile("testdata/objects/" + b.argument + ".yaml")
	if err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	var objects recorded
	if err := yaml.UnmarshalStrict(data, &objects); err != nil || len(objects.Ready) == 0 || len(objects.Unready) == 0 {
		t.Fatalf("%s: %s has to have ready and unready objects: %v", b, b.argument, err)
	}
	for i, obj := range objects.Ready {
		if got := evaluate(t, set, obj); got.Status != probes.True {
			t.Errorf("%s: ready object %d is %s: %s", b, i, got.Status, got.Message())
		}
	}
	for i, obj := range objects.Unready {
		if got := evaluate(t, set, obj); got.Status == probes.True {
			t.Errorf("%s: unready object %d is True", b, i)
		}
	}
}

// evaluate judges an object as a watch delivers it.
func evaluate(t *testing.T, set *probes.Set, obj map[string]any) probes.Result {
	t.Helper()
	text, err := yaml.Marshal(obj)
	require.NoError(t, err)
	raw, err := yaml.YAMLToJSON(text)
	require.NoError(t, err)
	result, _ := set.EvaluateTrimmed(raw, false)
	return result
}
