package author

import (
	"bytes"
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
