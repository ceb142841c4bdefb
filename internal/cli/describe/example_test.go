package describe

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
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
