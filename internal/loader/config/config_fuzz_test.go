package config

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"lockstep.run/lockstep/test/fuzzing"
)

// fuzzConfigs are configurations for the fuzzed schemas.
var fuzzConfigs = []string{
	`{}`, `{"image":"x","replicas":3,"ports":[{"name":"a"},{}],"free":{"x":[1]},"resources":null}`, `{"image":"latest","replicas":2}`,
	`{"replicas":"2","unknown":{"a":[{}]},"limits":{"cpu":"1","mem":2}}`, `null`, `[]`, `{"a":{"b":{"c":[[{}]]}},"replicas":1e100}`,
}

// FuzzSchema checks that every schema is either rejected with the wrong field or admits
// configurations. Admitting a result again neither drops nor adds anything. Both attempts give the
// same result.
//
// Code: schema.go, admit.go, weigh.go
func FuzzSchema(f *testing.F) {
	for _, raw := range fuzzConfigs {
		f.Add(shop, raw)
	}

	for _, schema := range []string{
		"type: object\nproperties: {a: {type: object, additionalProperties: {type: string}}}", "type: object\nx-kubernetes-preserve-unknown-fields: true", "type: string", "type: object\nnullable: true",
		"type: object\nproperties: {a: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [n], items: {type: object, properties: {n: {type: string, default: x}}}}}",
		"type: object\nproperties: {a: {type: string, pattern: '^a+$', enum: [a, aa], maxLength: 3, format: date}}\nrequired: [a]", "type: object\nproperties: {a: {x-kubernetes-int-or-string: true, default: 1}}",
		"type: object\nproperties: {a: {type: integer, x-kubernetes-validations: [{rule: self > 1, messageExpression: \"'x' + string(self)\"}]}}", "type: object\nproperties: {a: {$ref: '#/a'}}",
		"type: object\nproperties: {a: {type: integer, default: x}}", "type: object\nanyOf: [{required: [a]}, {required: [b]}]\nproperties: {a: {type: string}, b: {type: string}}",
	} {
		f.Add(schema, `{"a":"aa","b":1}`)
		f.Add(schema, `{"a":[{"n":"y"},{}]}`)
	}

	f.Fuzz(func(t *testing.T, text, raw string) {
		if len(text)+len(raw) > 4<<10 {
			return
		}
		props := &apiextensionsv1.JSONSchemaProps{}
		if yaml.Unmarshal([]byte(text), props) != nil {
			return
		}
		ctx, cancel := fuzzing.Context(t)
		defer cancel()
		schema, errs := Compile(ctx, field.NewPath("schema"), props)
		if ctx.Err() != nil {
			return
		}
		if (schema == nil) != (len(errs) > 0) {
			t.Fatalf("%v and %v", schema, errs)
		}
		for _, err := range errs {
			if !strings.HasPrefix(err.Field, "schema") || err.ErrorBody() == "" {
				t.Fatalf("%q: %v", err.Field, err)
			}
		}
		if schema != nil {
			checkAdmit(t, schema, raw)
		}
	})
}

// checkAdmit admits a configuration, and the result once more.
func checkAdmit(t *testing.T, schema *Schema, raw string) {
	t.Helper()
	ctx, cancel := fuzzing.Context(t)
	defer cancel()
	values, unknown, broken, errs := schema.Admit(ctx, at, []byte(raw))
	errs = append(errs, broken...)
	again, unknownAgain, brokenAgain, errsAgain := schema.Admit(ctx, at, []byte(raw))
	errsAgain = append(errsAgain, brokenAgain...)
	if ctx.Err() != nil {
		return
	}
	if !reflect.DeepEqual(values, again) || !reflect.DeepEqual(unknown, unknownAgain) || len(errs) != len(errsAgain) {
		t.Fatalf("%v %v %v, then %v %v %v", values, unknown, errs, again, unknownAgain, errsAgain)
	}

	for _, u := range unknown {
		if !strings.HasPrefix(u.Field, "spec.config") || u.Remedy == "" {
			t.Fatalf("%+v", u)
		}
	}

	for _, err := range errs {
		if !strings.HasPrefix(err.Field, "spec.config") || err.ErrorBody() == "" {
			t.Fatalf("%q: %v", err.Field, err)
		}
	}

	if len(errs) > 0 {
		return
	}

	admitted, err := json.Marshal(values)
	if err != nil {
		t.Fatalf("%v: %v", values, err)
	}

	second, unknown, _, errs := schema.Admit(ctx, at, admitted)
	text, _ := json.Marshal(second)
	if ctx.Err() == nil && (len(unknown)+len(errs) > 0 || string(text) != string(admitted)) {
		t.Fatalf("%s was admitted as %s, and that as %s, %v, %v", raw, admitted, text, unknown, errs)
	}
}
