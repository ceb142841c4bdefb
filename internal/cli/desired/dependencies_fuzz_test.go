package desired

import "testing"

func FuzzOverride(f *testing.F) {
	for _, seed := range []string{`db={"package":{"version":"<2"}}`, "db=", "=", "db=- a", "db=a: &a [*a]", "db={configFrom: [{configMapKeyRef: {name: x, key: y}}]}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		o, err := parseOverride(text)
		if err == nil && (o.Name == "" || o.Package == nil && len(o.ConfigFrom) == 0) {
			t.Errorf("%q: %+v", text, o)
		}

	})
}
