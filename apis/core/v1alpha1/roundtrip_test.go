package v1alpha1_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// What Package Operator wrote has to survive a read and a write by this engine.
func TestPackageOperatorObjectsRoundTrip(t *testing.T) {
	t.Parallel()
	scheme := newScheme(t)
	seen := map[string]bool{}
	for _, document := range append(documents(t, "testdata/packageoperator.yaml"), documents(t, "testdata/repositories.yaml")...) {
		var want map[string]any
		if err := json.Unmarshal(document, &want); err != nil {
			t.Fatal(err)
		}
		kind, _ := want["kind"].(string)
		seen[kind] = true
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			object, err := scheme.New(corev1alpha1.GroupVersion.WithKind(kind))
			if err != nil {
				t.Fatal(err)
			}
			strict := json.NewDecoder(bytes.NewReader(document))
			strict.DisallowUnknownFields()
			if err := strict.Decode(object); err != nil {
				t.Fatal(err)
			}
			// A copy, so that the generated code is part of it.
			written, err := json.Marshal(object.DeepCopyObject())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(decodeNumbers(t, document), decodeNumbers(t, written)); diff != "" {
				t.Errorf("read and written (-want +got):\n%s", diff)
			}
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
			if err != nil {
				t.Fatal(err)
			}
			converted, err := json.Marshal(content)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(decodeNumbers(t, document), decodeNumbers(t, converted)); diff != "" {
				t.Errorf("converted to unstructured (-want +got):\n%s", diff)
			}
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
	if err != nil {
		t.Fatal(err)
	}
	reader := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	var found [][]byte
	for {
		var document json.RawMessage
		err := reader.Decode(&document)
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, document)
	}
}

// decodeNumbers decodes without rounding.
func decodeNumbers(t *testing.T, document []byte) map[string]any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	var content map[string]any
	if err := decoder.Decode(&content); err != nil {
		t.Fatal(err)
	}
	return content
}
