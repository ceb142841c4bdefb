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

	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/test/require"
)

// The types have to know every field of a manifest, and must not lose one.
func TestManifestsRoundTrip(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	require.NoError(t, manifestsv1alpha1.AddToScheme(scheme))
	content, err := os.ReadFile("testdata/manifest.yaml")
	require.NoError(t, err)
	reader := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for count := 0; ; count++ {
		var document json.RawMessage
		err := reader.Decode(&document)
		if errors.Is(err, io.EOF) {
			require.Equal(t, 5, count, "there were")
			return
		}
		require.NoError(t, err)
		want := map[string]any{}
		require.NoError(t, json.Unmarshal(document, &want))
		object, err := scheme.New(manifestsv1alpha1.GroupVersion.WithKind(want["kind"].(string)))
		require.NoError(t, err)
		strict := json.NewDecoder(bytes.NewReader(document))
		strict.DisallowUnknownFields()
		require.NoError(t, strict.Decode(object))
		written, err := json.Marshal(object.DeepCopyObject())
		require.NoError(t, err)
		got := map[string]any{}
		require.NoError(t, json.Unmarshal(written, &got))
		require.Equal(t, want, got, "read and written")
	}
}
