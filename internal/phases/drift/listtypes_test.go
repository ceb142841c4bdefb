package drift

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/testing/yamltest"
)

func learn(shapes *Shapes, fields ...string) *KindShapes {
	var entries []metav1.ManagedFieldsEntry
	for _, text := range fields {
		entries = append(entries, metav1.ManagedFieldsEntry{FieldsV1: metav1.NewFieldsV1(text)})
	}
	shapes.Learn(schema.GroupKind{Kind: "A"}, entries)
	return shapes.Of(schema.GroupKind{Kind: "A"})
}

func pathTo(names ...string) pathID {
	path := rootPath
	for _, name := range names {
		path = field(path, name)
	}
	return path
}

func TestLearn(t *testing.T) {
	t.Parallel()
	kind := learn(NewShapes(), `{"f:spec": {
		"f:keyed": {".": {}, "k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:inner": {"v:\"x\"": {}}}},
		"f:set": {"v:\"a\"": {}}, "f:numbers": {"v:1": {}},
		"f:whole": {}, "f:parts": {"f:a": {}}, "f:both": {}}}`, `{"f:spec":{"f:both":{"f:a":{}}}}`)
	keyed, known := kind.list(pathTo("spec", "keyed"))
	if !known || fmt.Sprint(keyed.keys) != "[port protocol]" {
		t.Errorf("keyed = %v, %t", keyed, known)
	}
	for _, path := range []pathID{pathTo("spec", "set"), pathTo("spec", "numbers"), pathTo("spec", "keyed", elements, "inner")} {
		if shape, known := kind.list(path); !known || shape.keys != nil {
			t.Errorf("a set is %v, %t", shape, known)
		}
	}
	for name, want := range map[string]bool{"whole": true, "parts": false, "both": false, "none": false} {
		if got := kind.whole(pathTo("spec", name)); got != want {
			t.Errorf("whole(%s) = %t", name, got)
		}
	}
	if _, known := kind.list(pathTo("spec", "whole")); known {
		t.Error("a leaf is a list whose elements can be told apart")
	}
	if NewShapes().Of(schema.GroupKind{Kind: "B"}) == kind {
		t.Error("kinds share their shapes")
	}
	var nothing *KindShapes
	if _, known := nothing.list(rootPath); known || nothing.whole(rootPath) {
		t.Error("nil knows something")
	}
}

func TestLearnChangesItsMind(t *testing.T) {
	t.Parallel()
	shapes := NewShapes()
	learn(shapes, `{"f:spec":{"f:list":{"k:{\"name\":\"a\"}":{}}}}`)
	kind := learn(shapes, `{"f:spec":{"f:list":{"k:{\"name\":\"a\",\"port\":1}":{}}}}`)
	if shape, _ := kind.list(pathTo("spec", "list")); len(shape.keys) != 2 {
		t.Errorf("the list has the keys %v, want those seen last", shape.keys)
	}
}

func TestLearnMalformed(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		``, `{`, `[]`, `{"f:a"}`, `{"f:a":{}`, `{"f:a":{},}`, `{"f:a":1}`, `{"f:a":{"k:x":{}}}`, `{"f:a":{"k:{}":{}}}`,
		`{"f:a":{"k:":{}}}`, `{"f:\`, `{"f:metadata":{"f:a":`, `{"f:data":{"`, `{"f:a":{"k:{\"`, "\x00",
		strings.Repeat(`{"f:a":`, limits.FieldsDepth+10) + "{}" + strings.Repeat("}", limits.FieldsDepth+10),
	} {
		if kind := learn(NewShapes(), text); len(kind.lists) != 0 {
			t.Errorf("%.40q teaches %v", text, kind.lists)
		}
	}
	// Lists of which one key was seen already.
	shapes := NewShapes()
	learn(shapes, `{"f:a":{"k:{\"n\":1}":{}}}`)
	for _, text := range []string{`{"n":1`, `{"n":`, `{"n"`, `{"n`, `{`, ``, `{"n":"x`, `{"n":1}x`, `{"m":1}`} {
		if names([]byte(text), []string{"n"}) {
			t.Errorf("names(%q) = true", text)
		}
	}
}

func TestShapesAreBounded(t *testing.T) {
	t.Parallel()
	shapes := NewShapes()
	for i := range 3 * limits.ShapesPerKind {
		learn(shapes, fmt.Sprintf(`{"f:spec":{"f:x%d":{},"f:l%d":{"v:1":{}}}}`, i, i))
	}
	kind := shapes.Of(schema.GroupKind{Kind: "A"})
	if len(kind.lists) > limits.ShapesPerKind || len(kind.maps) > limits.ShapesPerKind {
		t.Errorf("%d lists and %d maps are remembered", len(kind.lists), len(kind.maps))
	}
	learn(shapes, `{"f:data":{"f:a":{}},"f:metadata":{"f:labels":{"f:x":{}}},"f:status":{"f:a":{}}}`)
	if other := learn(NewShapes(), `{"f:data":{"f:a":{}},"f:metadata":{"f:labels":{"f:x":{}}},"f:status":{"f:a":{}}}`); len(other.maps) != 0 {
		t.Errorf("%d fields of data, metadata and status are remembered", len(other.maps))
	}
}

func TestLearnIgnoresSubresources(t *testing.T) {
	t.Parallel()
	shapes := NewShapes()
	shapes.Learn(schema.GroupKind{}, []metav1.ManagedFieldsEntry{
		{Subresource: "status", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:a":{"v:1":{}}}}`)}, {},
	})
	if kind := shapes.Of(schema.GroupKind{}); len(kind.lists) != 0 {
		t.Errorf("a subresource teaches %v", kind.lists)
	}
}

func TestLearnConcurrently(t *testing.T) {
	t.Parallel()
	shapes := NewShapes()
	template, live := yamltest.Decode(t, `{spec: {l1: [1]}}`), yamltest.Decode(t, `{spec: {l1: [1, 2]}}`)
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			for i := range 200 {
				kind := learn(shapes, fmt.Sprintf(`{"f:spec":{"f:l%d":{"v:1":{}}}}`, (i+worker)%50))
				Project(template, live, kind)
				Matches(template, live, kind)
			}
		})
	}
	group.Wait()
	if !Matches(template, live, shapes.Of(schema.GroupKind{Kind: "A"})) {
		t.Error("the set was not learned")
	}
}

// Whatever stands in the managed fields of an object, learning from it ends.
//
// Code: shapes.go, fields.go
func FuzzLearn(f *testing.F) {
	for _, seed := range []string{`{"f:a":{"k:{\"n\":1,\"m\":\"x\"}":{".":{},"f:n":{}},"v:1":{}}}`, `{"f:metadata":{"f:labels":{}}}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		shapes := NewShapes()
		learn(shapes, text)
		learn(shapes, text+" ")
	})
}
