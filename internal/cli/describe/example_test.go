package describe

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"lockstep.run/lockstep/internal/loader/config"
)

func schemaOf(t interface{ Fatal(...any) }, text string) *apiextensionsv1.JSONSchemaProps {
	props := &apiextensionsv1.JSONSchemaProps{}
	if err := yaml.Unmarshal([]byte(text), props); err != nil {
		t.Fatal(err)
	}
	return props
}

const exampleSchema = `
type: object
required: [name, ports, front]
properties:
  name: {type: string, description: "The name.\nOf the shop.", pattern: "^[a-z]{3,}-v[0-9]+$", minLength: 8}
  replicas: {type: integer, minimum: 1, maximum: 9, default: 3}
  ratio: {type: number, minimum: 0, exclusiveMinimum: true, multipleOf: 0.5}
  since: {type: string, format: date-time}
  level: {type: string, enum: [debug, info], default: info}
  token: {type: string, format: password, default: hunter2}
  word: {type: string, default: "on"}
  text: {type: string, default: "two\nlines"}
  port: {x-kubernetes-int-or-string: true, default: 80}
  ports: {type: array, minItems: 2, items: {type: object, required: [port], properties: {port: {type: integer, minimum: 1}, name: {type: string}}}}
  labels: {type: object, additionalProperties: {type: string}, default: {a: b}}
  front:
    type: object
    required: [color]
    properties:
      color: {type: string, enum: [red, blue]}
      size: {type: object, properties: {width: {type: integer}}}
  cache:
    type: object
    default: {}
    properties:
      size: {type: string, default: 1Gi, description: How much is kept.}
      kind: {type: string}
  back:
    type: object
    description: The back.
    properties: {color: {type: string, default: green}}
`

func TestExample(t *testing.T) {
	t.Parallel()
	got := Example(schemaOf(t, exampleSchema))
	golden(t, "testdata/example.yaml", got)
	if strings.Contains(got, "hunter2") {
		t.Error("a password is in it")
	}
}

// fits returns what of an example its schema refuses.
func fits(t interface{ Fatal(...any) }, props *apiextensionsv1.JSONSchemaProps) (problems []string) {
	raw, err := yaml.YAMLToJSON([]byte(Example(props)))
	if err != nil {
		t.Fatal("the example is no YAML: ", err, "\n", Example(props))
	}
	compiled, errs := config.Compile(context.Background(), field.NewPath("values"), props)
	if len(errs) > 0 {
		return nil // no schema of a package
	}
	_, unknown, _, errs := compiled.Admit(context.Background(), field.NewPath("values"), raw)
	for _, u := range unknown {
		problems = append(problems, "unknown "+u.Field)
	}
	for _, err := range errs {
		problems = append(problems, err.Error())
	}
	return problems
}

// The lines that are not comments fit the schema.
func TestExamplesFit(t *testing.T) {
	t.Parallel()
	if problems := fits(t, schemaOf(t, exampleSchema)); len(problems) > 0 {
		t.Errorf("%v", problems)
	}
	files, err := filepath.Glob("../../loader/config/testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if problems := fits(t, schemaOf(t, string(text))); len(problems) > 0 {
			t.Errorf("%s: %v", file, problems)
		}
	}
}

// drawn is a schema of some depth.
func drawn(t *rapid.T, depth int) apiextensionsv1.JSONSchemaProps {
	kinds := []string{"string", "integer", "number", "boolean", "array", "object"}
	if depth == 0 {
		kinds = kinds[:4]
	}
	props := apiextensionsv1.JSONSchemaProps{Type: rapid.SampledFrom(kinds).Draw(t, "type")}
	if rapid.Bool().Draw(t, "described") {
		props.Description = rapid.SampledFrom([]string{"A key.", "Two\nlines: {}", "# no\x1b[31m comment"}).Draw(t, "description")
	}
	low := rapid.Int64Range(-5, 5)
	switch props.Type {
	case "string":
		drawText(t, &props)
	case "integer", "number":
		if rapid.Bool().Draw(t, "bounded") {
			least := float64(low.Draw(t, "minimum"))
			most := least + 3
			props.Minimum, props.Maximum = &least, &most
			props.ExclusiveMinimum, props.ExclusiveMaximum = rapid.Bool().Draw(t, "above"), rapid.Bool().Draw(t, "below")
		}
	case "array":
		items := drawn(t, depth-1)
		props.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &items}
		if rapid.Bool().Draw(t, "several") {
			n := rapid.Int64Range(0, 3).Draw(t, "least")
			props.MinItems = &n
		}
	case "object":
		objectOf(t, &props, depth)
	}
	return props
}

func drawText(t *rapid.T, props *apiextensionsv1.JSONSchemaProps) {
	switch rapid.IntRange(0, 4).Draw(t, "kind of text") {
	case 0:
		props.Enum = []apiextensionsv1.JSON{{Raw: []byte(`"on"`)}, {Raw: []byte(`"off"`)}}
	case 1:
		props.Pattern = rapid.SampledFrom([]string{"^[a-z]+$", "^v[0-9]{2,4}(-rc)?$", "^(a|b)c*$", "x.y"}).Draw(t, "pattern")
	case 2:
		n := rapid.Int64Range(0, 9).Draw(t, "length")
		props.MinLength = &n
	case 3:
		props.Format = rapid.SampledFrom([]string{"password", "date-time", "ipv4", "uri", "uuid", "duration", "byte"}).Draw(t, "format")
	case 4:
		raw, _ := json.Marshal(rapid.SampledFrom([]string{"", "on", "12", "null", "two\nlines", "\u202e#", "- a", "a: b", "\x1b"}).Draw(t, "default"))
		props.Default = &apiextensionsv1.JSON{Raw: raw}
	}
}

func objectOf(t *rapid.T, props *apiextensionsv1.JSONSchemaProps, depth int) {
	props.Properties = map[string]apiextensionsv1.JSONSchemaProps{}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "on", "12", "with space", "c:d", "#e", "null"}), 0, 4, rapid.ID[string]).Draw(t, "names") {
		props.Properties[name] = drawn(t, depth-1)
		if rapid.Bool().Draw(t, "required") {
			props.Required = append(props.Required, name)
		}
	}
	if rapid.Bool().Draw(t, "by default") {
		props.Default = &apiextensionsv1.JSON{Raw: []byte("{}")}
		if len(props.Required) > 0 {
			props.Default = nil
		}
	}
}

// For any schema of the usual kinds, the lines that are not comments fit it, and are the
// same each time.
func TestExamplesOfAnySchema(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		props := apiextensionsv1.JSONSchemaProps{Type: "object"}
		objectOf(t, &props, 3)
		props.Default = nil
		if problems := fits(t, &props); len(problems) > 0 {
			t.Fatalf("%v of\n%s", problems, Example(&props))
		}
		if Example(&props) != Example(props.DeepCopy()) {
			t.Fatal("it differs from time to time")
		}
	})
}
