package author

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/test/require"
)

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
kind: ConfigMap
metadata:
  labels:
    package-operator.run/version: 1.0.0
    x: "y"
  name: a
data:
  a: "9007199254740993"
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

func TestWriteObjects(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 253)
	objects, err := renderedObjects(loadedPackage(
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"system:a"}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"`+long+`","namespace":"shop"}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"..","namespace":"shop"}}`,
	))
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "new")
	paths, err := writeObjects(dir, objects)
	require.NoError(t, err)
	for _, want := range []string{"01-crds/clusterrole.rbac.authorization.k8s.io_system%3aa.yaml", "03-third/configmap_shop_...yaml"} {
		if _, err := os.Stat(filepath.Join(dir, want)); err != nil {
			t.Errorf("%v; written: %q", err, paths)
		}
	}
	if !strings.HasPrefix(paths[1], "02-..%2f..%2fdeploy/configmap_shop_aaa") {
		t.Errorf("got %q", paths[1])
	}
	if entries, _ := os.ReadDir(filepath.Dir(dir)); len(entries) != 1 {
		t.Errorf("written outside the folder: %v", entries)
	}
	if _, err := writeObjects(dir, objects); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("a second run: %v", err)
	}
}
