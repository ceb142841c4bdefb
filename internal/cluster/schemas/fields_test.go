package schemas

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/yamltest"
)

// Paths go through references, lists and maps, and no further than the schema.
func TestHasField(t *testing.T) {
	t.Parallel()
	d := &document{}
	d.fill(map[string]json.RawMessage{
		"shop": json.RawMessage(`{"x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Shop"}],
			"properties": {"spec": {"allOf": [{"$ref": "#/components/schemas/spec"}]}, "free": {"x-kubernetes-preserve-unknown-fields": true}}}`),
		"spec": json.RawMessage(`{"properties": {"items": {"items": {"properties": {"name": {"type": "string"}}}},
			"labels": {"additionalProperties": {"type": "string"}}, "self": {"$ref": "#/components/schemas/spec"}, "any": {"additionalProperties": true}}}`),
		"loop": json.RawMessage(`{"x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Loop"}], "$ref": "#/components/schemas/loop"}`),
	})
	for path, want := range map[string]bool{
		"spec": true, "spec.items.name": true, "spec.items.size": false, "spec.labels": true, "spec.labels.x": false, "free.of.schema": true,
		"status": false, "spec.any.x": false, "": false, strings.Repeat("spec.self.self.", 10) + "items": false, "spec" + strings.Repeat(".self", 20) + ".items": true,
	} {
		missing, err := d.content.missing(t.Context(), kindOf("Shop"), []string{path})
		if got := len(missing) == 0; got != want || err != nil {
			t.Errorf("%s: %v, %v", path, got, err)
		}
	}
	if missing, err := d.content.missing(t.Context(), kindOf("Loop"), []string{"spec"}); len(missing) == 0 || err != nil {
		t.Errorf("a schema that refers to itself has no field: %v, %v", missing, err)
	}
}

func kindOf(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: kind}
}

// bombs are schemas of a kind A that an unbounded search never finishes.
var bombs = map[string]string{
	"allOf":        `"allOf": [{"$ref": "#/components/schemas/A"}, {"$ref": "#/components/schemas/A"}]`,
	"items":        `"items": {"$ref": "#/components/schemas/A"}, "additionalProperties": {"$ref": "#/components/schemas/A"}`,
	"pairs":        `"allOf": [{"$ref": "#/components/schemas/B"}, {"$ref": "#/components/schemas/B"}, {"$ref": "#/components/schemas/A"}]`,
	"properties":   `"properties": {"a": {"allOf": [{"$ref": "#/components/schemas/A"}, {"$ref": "#/components/schemas/A"}]}}, "items": {"$ref": "#/components/schemas/A"}`,
	"itself":       `"$ref": "#/components/schemas/A"`,
	"nested lists": `"items": ` + strings.Repeat(`{"items": `, 5000) + "{}" + strings.Repeat("}", 5000),
	"wide":         `"allOf": [{}` + strings.Repeat(`, {"$ref": "#/components/schemas/A"}`, 10_000) + "]",
}

func bomb(content string) *document {
	const kind = `"x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "A"}], `
	d := &document{}
	d.fill(map[string]json.RawMessage{
		"A": json.RawMessage("{" + kind + content + "}"), "B": json.RawMessage("{" + content + "}"),
	})
	return d
}

// An untrusted target publishes schemas: a search in them ends for any references.
func TestSchemaBombs(t *testing.T) {
	t.Parallel()
	for name, content := range bombs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := bomb(content)
			began := time.Now()
			missing, err := d.content.missing(t.Context(), kindOf("A"), []string{"x", "a.b.c.d.e.f", "spec.x"})
			if len(missing) != 3 || err != nil {
				t.Errorf("missing %v, %v", missing, err)
			}
			object := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "example.com/v1", "kind": "A", "x": int64(1), "a": map[string]any{"a": map[string]any{"b": []any{int64(1), map[string]any{}}}},
			}}
			_, _ = d.check(object)
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}

// What a search decodes is bounded, and it ends with its context.
func TestSearchIsBounded(t *testing.T) {
	t.Parallel()
	d := bomb(`"description": "` + strings.Repeat("x", 1<<20) + `", "items": {"allOf": [{"$ref": "#/components/schemas/A"}]}, "allOf": [` +
		strings.TrimSuffix(strings.Repeat(`{"description": "`+strings.Repeat("x", 1<<20)+`"}, `, 40), ", ") + "]")
	if _, err := d.content.missing(t.Context(), kindOf("A"), []string{"x"}); err == nil || !strings.Contains(err.Error(), strconv.Itoa(limits.SchemaSearchBytes)) {
		t.Errorf("a search through more than the limit: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.content.missing(ctx, kindOf("A"), []string{"x"}); !errors.Is(err, context.Canceled) {
		t.Errorf("a search after its context: %v", err)
	}
}

// A kind whose schema is too large to be decoded is left to the API server.
func TestLargeSchemas(t *testing.T) {
	t.Parallel()
	d := bomb(`"properties": {"x": {}` + strings.Repeat(`, "a": {}`, limits.SchemaObjects) + "}")
	deep := bomb(`"items": ` + strings.Repeat(`{"items": `, limits.SchemaNesting) + "{}" + strings.Repeat("}", limits.SchemaNesting))
	if d.converter(kindOf("A")) != nil || deep.converter(kindOf("A")) != nil {
		t.Error("a schema beyond the limits is decoded")
	}
	if quoted := bomb(`"description": "` + strings.Repeat(`{\"`, limits.SchemaNesting+1) + `"`); quoted.converter(kindOf("A")) == nil {
		t.Error("a schema within the limits is not decoded")
	}
	if _, err := definitionsOf([]byte(strings.Repeat("{", limits.SchemaDocumentObjects+1))); err == nil || !strings.Contains(err.Error(), "the limit is") {
		t.Errorf("a document beyond the limit: %v", err)
	}
}

// FuzzSchemas: for any published schemas, the search for fields and the check of an object end in
// bounded time.
//
// Code: document.go, fields.go, suggest.go
func FuzzSchemas(f *testing.F) {
	for _, content := range bombs {
		f.Add("{"+content+"}", "a.b")
	}
	f.Add(`{"properties": {"spec": {"items": {"$ref": "#/components/schemas/B"}}}}`, "spec.x")
	f.Fuzz(func(t *testing.T, definition, path string) {
		if len(definition) > 1<<16 || !json.Valid([]byte(definition)) {
			return
		}
		d := &document{}
		d.fill(map[string]json.RawMessage{"A": json.RawMessage(definition), "B": json.RawMessage(definition)})
		d.content.names[kindOf("A")] = "A"
		began := time.Now()
		if _, err := d.content.missing(t.Context(), kindOf("A"), []string{path}); err != nil && len(definition)*100 < limits.SchemaSearchBytes {
			t.Logf("not searched: %v", err)
		}
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "A", "spec": map[string]any{"x": []any{int64(1)}}}}
		_, _ = d.check(object)
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

// Parts of a path can be values of a Secret: a key of a map, the name of a field, a port.
func TestReduced(t *testing.T) {
	t.Parallel()
	const value = "s3cr3t.value"
	for _, test := range []struct {
		reason, object  string
		elements, names string
	}{
		{"an undeclared field", strings.Replace(deployment, "replicas: 2", value+": 2", 1),
			".spec." + value, ".spec.*"},
		{"a key of a map", strings.Replace(deployment, "matchLabels: {app: web}", "matchLabels: {"+value+": 1}", 1),
			".spec.selector.matchLabels." + value, ".spec.selector.matchLabels.*"},
		{"an element", strings.Replace(deployment, "ports: [{containerPort: 80}]", "ports: [{containerPort: 54321, name: "+value+", hostPorts: 1}]", 1),
			`.spec.template.spec.containers[*].ports[*].hostPorts: field not declared in schema, did you mean "hostPort"?`,
			".spec.template.spec.containers[*].ports[*].*: field not declared in schema"},
		{"an element that is there twice", strings.Replace(deployment, "[{name: A, value: b}", "[{name: "+value+", value: a}, {name: "+value+", value: b}", 1),
			".spec.template.spec.containers[*].env: duplicate entries", ".spec.template.spec.containers[*].env: duplicate entries"},
	} {
		err := newServer(t).checker(t).Check(t.Context(), []*unstructured.Unstructured{{Object: yamltest.Decode(t, test.object)}})[0]
		var invalid *InvalidError
		if !errors.As(err, &invalid) {
			t.Errorf("%s: %v", test.reason, err)
			continue
		}
		if got := invalid.Reduced(false); !strings.HasPrefix(got, test.elements) || strings.Contains(got, "54321") {
			t.Errorf("%s: %q, want %q", test.reason, got, test.elements)
		}
		if got := invalid.Reduced(true); !strings.HasPrefix(got, test.names) || strings.Contains(got, "s3cr3t") || strings.Contains(got, "54321") {
			t.Errorf("%s: %q, want %q", test.reason, got, test.names)
		}
	}
	odd := &InvalidError{Fields: []FieldError{{Path: ".a[" + value, Problem: value}}}
	if got := odd.Reduced(false); strings.Contains(got, value) || got == "" {
		t.Errorf("what cannot be read becomes %q", got)
	}
}
