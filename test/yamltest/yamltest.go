// Package yamltest reads the YAML of tests as the API machinery reads JSON.
package yamltest

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// Decode returns the mapping in a text. Whole numbers are int64, others float64. It ends a test
// whose text is invalid.
func Decode(t testing.TB, text string) map[string]any {
	t.Helper()
	var out map[string]any
	data, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		t.Fatalf("read the YAML of a test: %v", err)
	}
	return out
}

// Object returns the object in a text.
func Object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	return &unstructured.Unstructured{Object: Decode(t, text)}
}
