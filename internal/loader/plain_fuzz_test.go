package loader_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/violation"
)

// FuzzPlain checks that plain manifests never break the loader, and give a package with a readable
// manifest.
//
// Code: plain.go
func FuzzPlain(f *testing.F) {
	f.Add(plainObjects)
	f.Add("a: [")
	f.Add("kind: List\napiVersion: v1\nitems: [1, {kind: List, items: []}]")
	f.Add("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, annotations: [1]}")
	f.Fuzz(func(t *testing.T, text string) {
		files := loader.Files{"a.yaml": []byte(text)}
		one, err := loader.Plain("shop", files, loader.Declared{})
		if err != nil {
			var wrong violation.Violations
			if !errors.As(err, &wrong) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		if two, err := loader.Plain("shop", files, loader.Declared{}); err != nil || !cmp.Equal(one, two) {
			t.Fatal("the outcome differs the second time", err)
		}
		if _, err := loader.Describe(one); err != nil && !strings.Contains(text, "phase") {
			t.Fatal(err)
		}
	})
}
