package objects_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
)

// FuzzIgnoredFields checks that pointers are either refused or survive a round trip, and that
// objects of any shape keep their ignored fields.
//
// Code: ignored.go
func FuzzIgnoredFields(f *testing.F) {
	f.Add("/spec/a\n/hooks/0/policy", "{spec: {a: 1}, hooks: [{name: x}]}", "{spec: {a: 2}, hooks: [{name: y}, {name: x, policy: Fail}]}")
	f.Add("/metadata/labels/a~1b", "{metadata: {labels: {a/b: c}}}", "{metadata: []}")
	f.Fuzz(func(t *testing.T, pointers, first, second string) {
		fields, err := apinames.Default.ParseIgnoredFields(pointers)
		if err != nil {
			return
		}
		for _, path := range fields {
			again, err := apinames.Default.ParseFieldPointer(objects.FieldPointer(path))
			if err != nil || !cmp.Equal(path, again) {
				t.Fatalf("%q is read as %q, %v", path, again, err)
			}
		}
		var template, live map[string]any
		if len(first)+len(second) > 10_000 || yaml.Unmarshal([]byte(first), &template) != nil || yaml.Unmarshal([]byte(second), &live) != nil || fields.Check(template) != nil {
			return
		}
		kept := fields.Keep(template, live, func([]string) bool { return false })
		if diff := cmp.Diff(fields.Without(template, template), fields.Without(template, kept)); diff != "" {
			t.Fatal(diff)
		}
	})
}
