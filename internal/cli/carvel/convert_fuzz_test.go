package carvel

import (
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// Whatever the documents are, each is converted or noted, in the same way each time.
//
// Code: convert.go, install.go, repository.go
func FuzzConvert(f *testing.F) {
	input, err := os.ReadFile("testdata/input.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(input)
	f.Add([]byte(`{apiVersion: packaging.carvel.dev/v1alpha1, kind: PackageInstall, metadata: 1, spec: {values: [1], packageRef: x}}`))
	f.Add([]byte(`{apiVersion: packaging.carvel.dev/v1alpha1, kind: PackageRepository, spec: {fetch: {http: {url: 'http://a:b@c'}, git: 1}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		raw, err := yaml.YAMLToJSON(text)
		var doc map[string]any
		if len(text) > 1<<14 || err != nil || json.Unmarshal(raw, &doc) != nil || doc == nil {
			return
		}
		first := Convert([]map[string]any{doc}, GlobalNamespace)
		if len(first.Notes) == 0 && doc["items"] == nil {
			t.Fatal("nothing is said of it")
		}
		if notes(first) != notes(Convert([]map[string]any{doc}, GlobalNamespace)) {
			t.Fatal("it differs from time to time")
		}
		if _, err := json.Marshal(first.Objects); err != nil {
			t.Fatal(err)
		}
	})
}
