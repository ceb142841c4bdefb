package drift

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/test/yamltest"
)

func learn(types *ListTypes, fields ...string) *KindListTypes {
	var entries []metav1.ManagedFieldsEntry
	for _, text := range fields {
		entries = append(entries, metav1.ManagedFieldsEntry{FieldsV1: metav1.NewFieldsV1(text)})
	}
	types.Learn(schema.GroupKind{Kind: "A"}, entries)
	return types.Of(schema.GroupKind{Kind: "A"})
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
	kind := learn(NewListTypes(), `{"f:spec": {
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
	if NewListTypes().Of(schema.GroupKind{Kind: "B"}) == kind {
		t.Error("kinds share their types")
	}
	var nothing *KindListTypes
	if _, known := nothing.list(rootPath); known || nothing.whole(rootPath) {
		t.Error("nil knows something")
	}
}

func TestLearnChangesItsMind(t *testing.T) {
	t.Parallel()
	types := NewListTypes()
	learn(types, `{"f:spec":{"f:list":{"k:{\"name\":\"a\"}":{}}}}`)
	kind := learn(types, `{"f:spec":{"f:list":{"k:{\"name\":\"a\",\"port\":1}":{}}}}`)
	if shape, _ := kind.list(pathTo("spec", "list")); len(shape.keys) != 2 {
		t.Errorf("the list has the keys %v, want those seen last", shape.keys)
	}
}

func TestLearnMalformed(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		``, `{`, `[]`, `{"f:a"}`, `{"f:a":{}`, `{"f:a":{},}`, `{"f:a":1}`, `{"f:a":{"k:x":{}}}`, `{"f:a":{"k:{}":{}}}`,
		`{"f:a":{"k:":{}}}`, `{"f:\`, `{"f:metadata":{"f:a":`, `{"f:data":{"`, `{"f:a":{"k:{\"`, "\x00",
		strings.Repeat(`{"f:a":`, 100) + "{}" + strings.Repeat("}", 100),
	} {
		if kind := learn(NewListTypes(), text); len(kind.lists) != 0 {
			t.Errorf("%.40q teaches %v", text, kind.lists)
		}
	}
}

func TestListTypesAreBounded(t *testing.T) {
	t.Parallel()
	types := NewListTypes()
	for i := range 3 * shapesPerKind {
		learn(types, fmt.Sprintf(`{"f:spec":{"f:x%d":{},"f:l%d":{"v:1":{}}}}`, i, i))
	}
	kind := types.Of(schema.GroupKind{Kind: "A"})
	if len(kind.lists) > shapesPerKind || len(kind.maps) > shapesPerKind {
		t.Errorf("%d lists and %d maps are remembered", len(kind.lists), len(kind.maps))
	}
	learn(types, `{"f:data":{"f:a":{}},"f:metadata":{"f:labels":{"f:x":{}}},"f:status":{"f:a":{}}}`)
	if other := learn(NewListTypes(), `{"f:data":{"f:a":{}},"f:metadata":{"f:labels":{"f:x":{}}},"f:status":{"f:a":{}}}`); len(other.maps) != 0 {
		t.Errorf("%d fields of data, metadata and status are remembered", len(other.maps))
	}
}

func TestLearnIgnoresSubresources(t *testing.T) {
	t.Parallel()
	types := NewListTypes()
	types.Learn(schema.GroupKind{}, []metav1.ManagedFieldsEntry{
		{Subresource: "status", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:a":{"v:1":{}}}}`)}, {},
	})
	if kind := types.Of(schema.GroupKind{}); len(kind.lists) != 0 {
		t.Errorf("a subresource teaches %v", kind.lists)
	}
}

func TestLearnConcurrently(t *testing.T) {
	t.Parallel()
	types := NewListTypes()
	template, live := yamltest.Decode(t, `{spec: {l1: [1]}}`), yamltest.Decode(t, `{spec: {l1: [1, 2]}}`)
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			for i := range 200 {
				kind := learn(types, fmt.Sprintf(`{"f:spec":{"f:l%d":{"v:1":{}}}}`, (i+worker)%50))
				Project(apinames.Default, template, live, kind)
				Matches(apinames.Default, template, live, kind)
			}
		})
	}
	group.Wait()
	if !Matches(apinames.Default, template, live, types.Of(schema.GroupKind{Kind: "A"})) {
		t.Error("the set was not learned")
	}
}

// Whatever stands in the managed fields of an object, learning from it ends.
//
// Code: listtypes.go
func FuzzLearn(f *testing.F) {
	for _, seed := range []string{`{"f:a":{"k:{\"n\":1,\"m\":\"x\"}":{".":{},"f:n":{}},"v:1":{}}}`, `{"f:metadata":{"f:labels":{}}}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		types := NewListTypes()
		learn(types, text)
		learn(types, text+" ")
	})
}
