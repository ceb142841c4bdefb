package describe

import (
	"context"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/loader/config"
)

// Whatever a schema says that packages may have, its example is YAML, shows as it is on a terminal, and is the same each
// time.
//
// Code: example.go, sample.go
func FuzzExample(f *testing.F) {
	f.Add([]byte(exampleSchema))
	f.Add([]byte(`{type: object, properties: {a: {type: string, pattern: "^(a{2,9}|[^x-z]+)*$", minLength: 5}}, required: [a]}`))
	f.Add([]byte(`{type: object, required: [l], properties: {l: {type: array, minItems: 99, items: {type: number, minimum: 3, multipleOf: 0.1}}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		props := &apiextensionsv1.JSONSchemaProps{}
		if len(text) > 1<<14 || yaml.Unmarshal(text, props) != nil {
			return
		}
		if _, errs := config.Compile(context.Background(), field.NewPath("values"), props); len(errs) > 0 {
			return
		}
		got := Example(props)
		if got != Example(props) {
			t.Fatal("it differs from time to time")
		}
		if got != terminal.Text(got) || strings.Contains(got, "\t") {
			t.Fatalf("it does not show as it is: %q", got)
		}
		var value any
		if err := yaml.Unmarshal([]byte(got), &value); err != nil {
			t.Fatalf("%v\n%s", err, got)
		}
	})
}
