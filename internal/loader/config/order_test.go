package config

import (
	"fmt"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"lockstep.run/lockstep/test/require"
)

// TestOrder checks that the same problems have the same order each time. Otherwise a status would
// change, and a reader would search for the difference.
func TestOrder(t *testing.T) {
	t.Parallel()
	props, values := map[string]apiextensionsv1.JSONSchemaProps{}, map[string]any{}
	var want []string
	for i := range 10 {
		name := fmt.Sprintf("n%d", i)
		props[name], values[name] = apiextensionsv1.JSONSchemaProps{Type: "integer"}, "text"
		want = append(want, "config."+name)
	}

	s, errs := Compile(t.Context(), field.NewPath("schema"), &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: props})
	if len(errs) > 0 {
		t.Fatal(errs)
	}

	for range 5 {
		_, errs := s.Check(t.Context(), field.NewPath("config"), values)
		var got []string
		for _, err := range errs {
			got = append(got, err.Field)
		}
		require.Equal(t, want, got, "fields")
	}
}
