package author

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/author/lint"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/test/require"
)

// The loader, the linter and the editor find nothing in a new package.
func TestScaffold(t *testing.T) {
	t.Parallel()
	for _, opts := range []struct {
		name    string
		cluster bool
	}{{"shop", false}, {"shop", true}, {strings.Repeat("a", 63), false}} {
		files, err := scaffold(context.Background(), opts.name, opts.cluster)
		require.NoError(t, err)
		visible := loader.Files{}
		for p, data := range files {
			if !strings.HasPrefix(p, ".") {
				visible[p] = data
			}
		}
		if warnings, err := loader.Validate(context.Background(), visible); err != nil || len(warnings) > 0 {
			t.Errorf("%+v: %v, %v", opts, err, warnings)
		}
		if found, err := lint.Run(context.Background(), visible, lint.Options{}); err != nil || len(found) > 0 {
			t.Errorf("%+v: lint: %+v, %v", opts, found, err)
		}
		if len(files[".test-fixtures/debug/deployment.yaml"]) == 0 {
			t.Errorf("%+v: no fixtures: %v", opts, files.Paths())
		}
		fits(t, files[".schemas/PackageManifest.json"], files["manifest.yaml"])
	}
}

// fits checks a manifest against its schema, as an editor does.
func fits(t *testing.T, schema, manifest []byte) {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(schema)))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("mem:schema", doc))
	raw, err := yaml.YAMLToJSON(manifest)
	require.NoError(t, err)
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
	require.NoError(t, err)
	if err := c.MustCompile("mem:schema").Validate(value); err != nil {
		t.Error(err)
	}
}

func TestCheckName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"shop": true, "a-1": true, "": false, "Shop": false, "a.b": false, "a/b": false, "..": false, strings.Repeat("a", 64): false, "a\n": false} {
		if err := checkName(name); (err == nil) != want {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func loadedPackage(objects ...string) *loader.Package {
	p := &loader.Package{Labels: map[string]string{"package-operator.run/version": "1.0.0"}}
	for i, raw := range objects {
		p.Phases = append(p.Phases, corev1alpha1.ObjectSetTemplatePhase{
			Name:    []string{"crds", "../../deploy", "third"}[i],
			Objects: []corev1alpha1.ObjectSetObject{{Object: runtime.RawExtension{Raw: []byte(raw)}}},
		})
	}
	return p
}

func TestPrintObjects(t *testing.T) {
	t.Parallel()
	objects, err := renderedObjects(loadedPackage(
		`{"apiVersion":"v1","data":{"a":"9007199254740993"},"kind":"ConfigMap","metadata":{"name":"a","labels":{"x":"y"}}}`,
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"},"spec":{"replicas":9007199254740993}}`,
	))
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, printObjects(&out, objects))
	const want = `# Phase crds
apiVersion: v1
data:
  a: "9007199254740993"
kind: ConfigMap
metadata:
  labels:
    package-operator.run/version: 1.0.0
    x: "y"
  name: a
---
# Phase ../../deploy
apiVersion: apps/v1
kind: Deployment
metadata:
  labels:
    package-operator.run/version: 1.0.0
  name: web
  namespace: shop
spec:
  replicas: 9007199254740993
`
	require.Equal(t, want, out.String())
}
