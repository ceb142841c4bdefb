package v1alpha1_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/require"
)

// What Package Operator wrote has to survive a read and a write by this engine.
func TestPackageOperatorObjectsRoundTrip(t *testing.T) {
	t.Parallel()
	scheme := newScheme(t)
	seen := map[string]bool{}
	for _, document := range append(documents(t, "testdata/packageoperator.yaml"), documents(t, "testdata/repositories.yaml")...) {
		var want map[string]any
		require.NoError(t, json.Unmarshal(document, &want))
		kind, _ := want["kind"].(string)
		seen[kind] = true
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			object, err := scheme.New(corev1alpha1.GroupVersion.WithKind(kind))
			require.NoError(t, err)
			strict := json.NewDecoder(bytes.NewReader(document))
			strict.DisallowUnknownFields()
			require.NoError(t, strict.Decode(object))
			// A copy, so that the generated code is part of it.
			written, err := json.Marshal(object.DeepCopyObject())
			require.NoError(t, err)
			require.Equal(t, decodeNumbers(t, document), decodeNumbers(t, written), "read and written")
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
			require.NoError(t, err)
			converted, err := json.Marshal(content)
			require.NoError(t, err)
			require.Equal(t, decodeNumbers(t, document), decodeNumbers(t, converted), "converted to unstructured")
		})
	}
	for _, kind := range kinds {
		if !seen[kind] {
			t.Errorf("there is no %s in the test data", kind)
		}
	}
}

// documents returns the documents of a YAML file as JSON.
func documents(t *testing.T, path string) [][]byte {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	reader := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	var found [][]byte
	for {
		var document json.RawMessage
		err := reader.Decode(&document)
		if errors.Is(err, io.EOF) {
			return found
		}
		require.NoError(t, err)
		found = append(found, document)
	}
}

// decodeNumbers decodes without rounding.
func decodeNumbers(t *testing.T, document []byte) map[string]any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	var content map[string]any
	require.NoError(t, decoder.Decode(&content))
	return content
}
