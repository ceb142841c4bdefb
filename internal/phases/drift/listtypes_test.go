package drift

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/test/require"
	"lockstep.run/lockstep/test/yamltest"
)

func learn(fields ...string) *ListTypes {
	var entries []metav1.ManagedFieldsEntry
	for _, text := range fields {
		entries = append(entries, metav1.ManagedFieldsEntry{FieldsV1: metav1.NewFieldsV1(text)})
	}
	return LearnListTypes(entries)
}

// learned returns the types that the first entry shows.
func learned(types *ListTypes) *fieldTypes {
	if types == nil {
		return &fieldTypes{}
	}
	return types.entries[0]
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
	kind := learn(`{"f:spec": {
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
		require.Equal(t, want, kind.whole(pathTo("spec", name)), fmt.Sprintf("whole(%s)", name))
	}

	if _, known := kind.list(pathTo("spec", "whole")); known {
		t.Error("a leaf is a list whose elements can be told apart")
	}

	var nothing *ListTypes
	if _, known := nothing.list(rootPath); known || nothing.whole(rootPath) {
		t.Error("nil knows something")
	}
}

func TestLearnMalformed(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		``, `{`, `[]`, `{"f:a"}`, `{"f:a":{}`, `{"f:a":{},}`, `{"f:a":1}`, `{"f:a":{"k:x":{}}}`, `{"f:a":{"k:{}":{}}}`,
		`{"f:a":{"k:":{}}}`, `{"f:\`, `{"f:metadata":{"f:a":`, `{"f:data":{"`, `{"f:a":{"k:{\"`, "\x00",
		strings.Repeat(`{"f:a":`, 100) + "{}" + strings.Repeat("}", 100),
	} {
		if kind := learned(learn(text)); len(kind.lists) != 0 {
			t.Errorf("%.40q teaches %v", text, kind.lists)
		}
	}
}

func TestListTypesAreBounded(t *testing.T) {
	t.Parallel()
	cache, kind := NewListTypesCache(), schema.GroupKind{Kind: "A"}
	var fields []string
	for i := range 3 * entryTypes {
		fields = append(fields, fmt.Sprintf(`"f:x%d":{},"f:l%d":{"v:1":{}}`, i, i))
	}

	large := []metav1.ManagedFieldsEntry{{FieldsV1: metav1.NewFieldsV1(`{"f:spec":{` + strings.Join(fields, ",") + `}}`)}}
	if got := learned(cache.Learn(kind, large)); len(got.lists) > entryTypes || len(got.maps) > entryTypes {
		t.Errorf("%d lists and %d maps are learned", len(got.lists), len(got.maps))
	}

	for i := range cache.kinds[kind] {
		if cache.kinds[kind][i].Load() != nil {
			t.Error("a large entry is cached")
		}
	}

	if other := learn(`{"f:data":{"f:a":{}},"f:metadata":{"f:labels":{"f:x":{}}},"f:status":{"f:a":{}}}`); other != nil {
		t.Errorf("%d fields of data, metadata and status are remembered", len(learned(other).maps))
	}
}

func TestLearnIgnoresSubresources(t *testing.T) {
	t.Parallel()
	types := LearnListTypes([]metav1.ManagedFieldsEntry{
		{Subresource: "status", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:a":{"v:1":{}}}}`)}, {},
	})
	if types != nil {
		t.Errorf("a subresource teaches %v", learned(types))
	}
}

func TestLearnConcurrently(t *testing.T) {
	t.Parallel()
	cache := NewListTypesCache()
	template, live := yamltest.Decode(t, `{spec: {l1: [1]}}`), yamltest.Decode(t, `{spec: {l1: [1, 2]}}`)
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			for i := range 200 {
				text := fmt.Sprintf(`{"f:spec":{"f:l%d":{"v:1":{}}}}`, (i+worker)%50)
				types := cache.Learn(schema.GroupKind{Kind: "A"}, []metav1.ManagedFieldsEntry{{FieldsV1: metav1.NewFieldsV1(text)}})
				Project(apinames.Default, template, live, types)
				require.Equal(t, ((i+worker)%50 == 1), Matches(apinames.Default, template, live, types), fmt.Sprintf("%s: matches", text))
			}
		})
	}

	group.Wait()
}

// FuzzLearn checks that learning from arbitrary managed fields ends.
//
// Code: listtypes.go
func FuzzLearn(f *testing.F) {
	for _, seed := range []string{`{"f:a":{"k:{\"n\":1,\"m\":\"x\"}":{".":{},"f:n":{}},"v:1":{}}}`, `{"f:metadata":{"f:labels":{}}}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		learn(text, text+" ")
	})
}
