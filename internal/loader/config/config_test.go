package config

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

var at = field.NewPath("spec", "config")

func compile(t *testing.T, text string) (*Schema, field.ErrorList) {
	t.Helper()
	props := &apiextensionsv1.JSONSchemaProps{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), props))
	return Compile(context.Background(), field.NewPath("schema"), props)
}

const shop = `
type: object
required: [image]
properties:
  image: {type: string, minLength: 1}
  replicas: {type: integer, default: 1, minimum: 0, maximum: 5}
  resources:
    type: object
    default: {}
    properties:
      cpu: {type: string, default: 100m}
  limits:
    type: object
    properties:
      cpu: {type: string, default: 1}
  ports:
    type: array
    items: {type: object, properties: {name: {type: string}}}
  free: {type: object, x-kubernetes-preserve-unknown-fields: true}
x-kubernetes-validations:
- rule: self.image != 'latest' || self.replicas < 2
  message: latest is for one replica only
`

func TestAdmit(t *testing.T) {
	t.Parallel()
	schema, errs := compile(t, strings.Replace(shop, "cpu: {type: string, default: 1}", "cpu: {type: string, default: '1'}", 1))
	if errs != nil {
		t.Fatal(errs)
	}

	for _, test := range []struct {
		reason, raw string
		want        map[string]any
		unknown     []Unknown
		errs        string
	}{
		{"defaults, nested where the parent has one", `{"image":"x"}`,
			map[string]any{"image": "x", "replicas": int64(1), "resources": map[string]any{"cpu": "100m"}}, nil, ""},
		{"null of a field with a default", `{"image":"x","replicas":null,"limits":{}}`,
			map[string]any{"image": "x", "replicas": int64(1), "resources": map[string]any{"cpu": "100m"}, "limits": map[string]any{"cpu": "1"}}, nil, ""},
		{"unknown keys", `{"image":"x","replica":2,"ports":[{"nam":"a"}],"free":{"a":1}}`,
			map[string]any{"image": "x", "replicas": int64(1), "resources": map[string]any{"cpu": "100m"}, "ports": []any{map[string]any{}}, "free": map[string]any{"a": int64(1)}},
			[]Unknown{{"spec.config.ports[0].nam", `Did you mean "name"?`}, {"spec.config.replica", `Did you mean "replicas"?`}}, ""},
		{"missing", ``, nil, nil, "spec.config.image: Required value"},
		{"wrong type", `{"image":1}`, nil, nil, "spec.config.image: Invalid value: \"integer\""},
		{"out of range", `{"image":"x","replicas":9}`, nil, nil, "spec.config.replicas: Invalid value: 9: replicas in body should be less than or equal to 5"},
		{"CEL rule", `{"image":"latest","replicas":2}`, nil, nil, "latest is for one replica only"},
		{"no object", `[1]`, nil, nil, "has to be an object"},
		{"no JSON", `{`, nil, nil, "has to be an object"},
		{"too large", `{"image":"` + strings.Repeat("x", limits.ConfigBytes) + `"}`, nil, nil, fmt.Sprintf("the limit is %d", limits.ConfigBytes)},
	} {
		got, unknown, broken, errs := schema.Admit(context.Background(), at, []byte(test.raw))
		errs = append(errs, broken...)
		if test.errs != "" {
			if errs == nil || !strings.Contains(errs.ToAggregate().Error(), test.errs) {
				t.Errorf("%s: %v", test.reason, errs)
			}
			continue
		}
		if diff := cmp.Diff(test.want, got) + cmp.Diff(test.unknown, unknown); diff != "" || errs != nil {
			t.Errorf("%s: %v %s", test.reason, errs, diff)
		}
	}
}

func TestNoSchema(t *testing.T) {
	t.Parallel()
	var none *Schema
	got, unknown, _, errs := none.Admit(context.Background(), at, []byte(`{"b":1,"a":2}`))
	want := []Unknown{{"spec.config.a", "The package has no configuration."}, {"spec.config.b", "The package has no configuration."}}
	if diff := cmp.Diff(map[string]any{}, got) + cmp.Diff(want, unknown); diff != "" || errs != nil {
		t.Error(errs, diff)
	}
	if got, unknown, _, errs := none.Admit(context.Background(), at, []byte(`null`)); len(got)+len(unknown)+len(errs) != 0 || got == nil {
		t.Error(got, unknown, errs)
	}
}

func TestCompileRefuses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, schema, want string }{
		{"no object", `type: string`, "schema.type: Invalid value: \"string\""},
		{"nullable", `{type: object, nullable: true}`, "not nullable"},
		{"not structural", `{type: object, properties: {a: {description: x}}}`, "schema.properties[a].type: Required value"},
		{"remote reference", `{type: object, properties: {a: {$ref: "http://example.com"}}}`, "$ref"},
		{"default violates the schema", shop, "schema.properties[limits].properties[cpu].default"},
		{"default has unknown fields", `{type: object, properties: {a: {type: object, default: {x: 1}}}}`, "default"},
		{"bad pattern", `{type: object, properties: {a: {type: string, pattern: "("}}}`, "pattern"},
		{"CEL that does not compile", `{type: object, x-kubernetes-validations: [{rule: "self.x"}]}`, "schema.x-kubernetes-validations[0].rule"},
		{"many properties", "type: object\nproperties:\n" + repeated("  p%d: {type: string}\n", limits.SchemaNodes), fmt.Sprintf("more than %d schemas", limits.SchemaNodes)},
		{"many patterns", "type: object\nproperties:\n" + repeated("  p%d: {type: string, pattern: 'a{1000}'}\n", 2000), fmt.Sprintf("more than %d instructions", limits.SchemaPatternWork)},
		{"many rules", "type: object\nx-kubernetes-validations:\n" + repeated("- rule: self.p%d == 1\n", limits.SchemaRules+1), fmt.Sprintf("more than %d rules", limits.SchemaRules)},
		{"CEL that costs too much", `{type: object, properties: {a: {type: array, items: {type: array, items: {type: string}}}}, x-kubernetes-validations: [{rule: "self.a.all(x, self.a.all(y, x.all(z, y.all(w, z == w))))"}]}`, "estimated rule cost"},
	} {
		start := time.Now()
		_, errs := compile(t, test.schema)
		if errs == nil || !strings.Contains(errs.ToAggregate().Error(), test.want) {
			t.Errorf("%s: %v", test.name, errs)
		}
		if d := time.Since(start); d > time.Minute {
			t.Errorf("%s: took %v", test.name, d)
		}
	}

	if s, errs := Compile(context.Background(), at, nil); s != nil || errs != nil {
		t.Error("no schema is the nil schema", errs)
	}
}

func repeated(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// A small configuration and a small schema can be costly together.
func TestAdmitIsBounded(t *testing.T) {
	t.Parallel()
	keys := "k: {}"
	for i := range 200 {
		keys += fmt.Sprintf(", k%d: {}", i)
	}

	many, errs := compile(t, "type: object\nproperties:\n  a:\n    type: array\n    items:\n      type: object\n      properties:\n"+
		"        d: {type: object, x-kubernetes-preserve-unknown-fields: true, default: {"+keys+"}}\n")
	if errs != nil {
		t.Fatal(errs)
	}

	heavy, errs := compile(t, "type: object\nproperties:\n  a:\n    type: string\n    allOf:\n    - {pattern: '"+strings.Repeat("(a?){1000}", 20)+"'}\n")
	if errs != nil {
		t.Fatal(errs)
	}

	choice, errs := compile(t, "type: object\nproperties:\n  a: {type: array, items: {type: string, enum: ["+repeated("v%d, ", 5000)+"x]}}\n")
	if errs != nil {
		t.Fatal(errs)
	}

	for _, test := range []struct {
		reason, raw, want string
		schema            *Schema
	}{
		{"many values, each of them one of many", `{"a":[` + strings.Repeat(`"x",`, 9000) + `"x"]}`, fmt.Sprintf("the limit of the product is %d", limits.ConfigCheckWork), choice},
		{"a value that is one of many", `{"a":["x"]}`, "", choice},
		{"a default for each of many elements", `{"a":[` + strings.Repeat("{},", 20_000) + `{}]}`, fmt.Sprintf("more than %d values with its defaults", limits.ConfigValues), many},
		{"a default for each of some elements", `{"a":[` + strings.Repeat("{},", 40) + `{}]}`, "", many},
		{"a long text for a long pattern", `{"a":"` + strings.Repeat("a", 100_000) + `"}`, fmt.Sprintf("the limit of the product is %d", limits.ConfigMatchWork), heavy},
		{"a short text for a long pattern", `{"a":"aaa"}`, "", heavy},
	} {
		_, _, broken, errs := test.schema.Admit(context.Background(), at, []byte(test.raw))
		errs = append(errs, broken...)
		if test.want == "" && errs != nil || test.want != "" && (len(errs) != 1 || !strings.Contains(errs[0].Error(), test.want)) {
			t.Errorf("%s: %v", test.reason, errs)
		}
	}
}

// Neither compiling a schema nor checking an empty configuration with it can take forever.
func TestSchemasThatGrow(t *testing.T) {
	t.Parallel()
	double := "[[0]]" + strings.Repeat(".map(y, y + y)", 15) + ".map(y, y + y + y + y)" + strings.Repeat(".map(y, y + y)", 9) + "[0]"
	for _, test := range []struct{ reason, schema, want string }{
		{"a rule whose types nest", "type: object\nx-kubernetes-validations: [{rule: '[0]" + strings.Repeat(".map(y, [y])", 100) + " == []'}]\n", fmt.Sprintf("more than %d macros", limits.ExpressionMacros)},
		{"a rule that compares doubled values", "type: object\nx-kubernetes-validations: [{rule: '" + double + " == [0]'}]\n", "a rule of the schema builds a list"},
		{"a rule that searches doubled values", "type: object\nx-kubernetes-validations: [{rule: '1 in " + double + "'}]\n", "a rule of the schema builds a list"},
		{"a message that does", "type: object\nx-kubernetes-validations: [{rule: 'false', messageExpression: '1 in " + double + " ? \"a\" : \"b\"'}]\n", "a rule of the schema builds a list"},
		{"many defaults", "type: object\nproperties: {a: {type: array, items: {type: string}, default: [" + repeated("a%d, ", 20_000) + "]}}\n", fmt.Sprintf("more than %d values in its defaults", limits.ConfigValues)},
		{"defaults within each other, and many rules", nestedDefaults(40, 0, 100), fmt.Sprintf("a rule counted as 100; the limit is %d", limits.SchemaDefaultWork)},
		{"defaults within each other, and many schemas", nestedDefaults(40, 10_000, 0), fmt.Sprintf("a rule counted as 100; the limit is %d", limits.SchemaDefaultWork)},
		{"defaults, each of them one of many", "type: object\nproperties: {a: {type: array, items: {type: string, enum: [" + repeated("a%d, ", 5000) + "]}, default: [" + repeated("a%d, ", 5000) + "]}}\n", fmt.Sprintf("the limit of the product is %d", limits.ConfigCheckWork)},
	} {
		if _, errs := compile(t, test.schema); len(errs) != 1 || !strings.Contains(errs[0].Error(), test.want) {
			t.Errorf("%s: %.300v", test.reason, errs)
		}
	}
}

// nestedDefaults is a schema of nested objects, each with a default, around properties and rules.
func nestedDefaults(depth, properties, rules int) string {
	inner := "{type: object, properties: {" + repeated("p%d: {type: integer}, ", properties+1) + "}, x-kubernetes-validations: [" + repeated("{rule: '!has(self.p0) || self.p0 > %d'}, ", rules) + "]"
	for range depth {
		inner = "{type: object, properties: {a: " + inner + ", default: {}}}"
	}
	return inner + "}"
}

// Nested objects with defaults are compiled once for each level, and the cost is counted.
func TestDefaultWork(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason string
		schema string
		want   int
	}{
		{"no default", nestedDefaults(0, 10, 0), 0},
		{"one", nestedDefaults(1, 9, 0), 11},
		{"two, one around the other", nestedDefaults(2, 9, 0), 11 + 12},
		{"a rule", nestedDefaults(1, 9, 1), 11 + 100 + len("!has(self.p0) || self.p0 > 0")/6},
		{"of values alone", "type: object\nproperties: {a: {type: integer, default: 1}, b: {type: string, default: x}}", 2},
	} {
		props := &apiextensionsv1.JSONSchemaProps{}
		if err := yaml.Unmarshal([]byte(test.schema), props); err != nil {
			t.Fatalf("%s: %v", test.reason, err)
		}
		w := &weight{}
		w.add(props, perValue{})
		require.Equal(t, test.want, w.defaultwork, test.reason)
		if _, errs := compile(t, test.schema); errs != nil {
			t.Errorf("%s: %v", test.reason, errs)
		}
	}
}

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
