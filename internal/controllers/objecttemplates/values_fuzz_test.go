package objecttemplates

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzKey compiles and evaluates any key: it neither panics nor depends on chance.
//
// Code: values.go
func FuzzKey(f *testing.F) {
	for _, key := range []string{".spec.containers[*].name", "{..image}", "jq:.spec | keys", `.status.conditions[?(@.type=="Available")].status`, ".a[0:1:2]", ".a['b','c']", ".a[?(@.b[?(@.c)])]"} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, text string) {
		k, err := compileKey(text)
		if err != nil {
			return
		}
		first, err1 := k.read(decoded(t, live))
		second, err2 := k.read(decoded(t, live))
		if (err1 == nil) != (err2 == nil) {
			t.Fatalf("%q: %v, then %v", text, err1, err2)
		}
		if diff := cmp.Diff(first, second); err1 == nil && diff != "" {
			t.Fatalf("%q:\n%s", text, diff)
		}
	})
}
