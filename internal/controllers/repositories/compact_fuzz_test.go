package repositories

import (
	"encoding/json"
	"testing"
)

// The canonical form of a schema is valid, and its own canonical form.
//
// Code: compact.go
func FuzzCanonicalJSON(f *testing.F) {
	for _, seed := range []string{`{}`, `{"b":1,"a":[1.0,null,"x"]}`, `1e400`, `"\u2028"`, `{"a":`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		once := canonicalJSON(raw)
		if !json.Valid(once) || string(canonicalJSON(once)) != string(once) {
			t.Errorf("%q became %q, then %q", raw, once, canonicalJSON(once))
		}
	})
}
