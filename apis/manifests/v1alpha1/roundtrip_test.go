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

	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
)

// No field of a manifest may be unknown to the types, or be lost by them.
func TestManifestsRoundTrip(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := manifestsv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile("testdata/manifest.yaml")
	if err != nil {
		t.Fatal(err)
	}
	reader := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for count := 0; ; count++ {
		var document json.RawMessage
		err := reader.Decode(&document)
		if errors.Is(err, io.EOF) {
			if count != 5 {
				t.Errorf("there were %d documents, want 5", count)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]any{}
		if err := json.Unmarshal(document, &want); err != nil {
			t.Fatal(err)
		}
		object, err := scheme.New(manifestsv1alpha1.GroupVersion.WithKind(want["kind"].(string)))
		if err != nil {
			t.Fatal(err)
		}
		strict := json.NewDecoder(bytes.NewReader(document))
		strict.DisallowUnknownFields()
		if err := strict.Decode(object); err != nil {
			t.Fatal(err)
		}
		written, err := json.Marshal(object.DeepCopyObject())
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]any{}
		if err := json.Unmarshal(written, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("read and written (-want +got):\n%s", diff)
		}
	}
}
