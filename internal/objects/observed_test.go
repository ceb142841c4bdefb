package objects_test

import (
	"testing"

	"pgregory.net/rapid"

	"lockstep.run/lockstep/internal/objects"
)

func TestNewerThan(t *testing.T) {
	t.Parallel()
	at := func(version string) *objects.Observed { return &objects.Observed{ResourceVersion: version} }
	for _, tc := range []struct {
		reason string
		a, b   *objects.Observed
		want   bool
	}{
		{"any version is newer than an absent one", at("1"), nil, true},
		{"later", at("10"), at("9"), true},
		{"earlier", at("9"), at("10"), false},
		{"the same", at("9"), at("9"), false},
		{"beyond 32 bits", at("4294967297"), at("4294967296"), true},
		{"no number", at("abc"), at("9"), true},
		{"compared with no number", at("9"), at("abc"), true},
		{"unknown", at(""), at("9"), true},
	} {
		if got := tc.a.NewerThan(tc.b); got != tc.want {
			t.Errorf("%s: got %t", tc.reason, got)
		}
	}
}

func TestKey(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		key  objects.Key
		want string
	}{
		{objects.Key{Group: "apps", Kind: "Deployment", Namespace: "n", Name: "x"}, "apps Deployment n/x"},
		{objects.Key{Kind: "ConfigMap", Namespace: "n", Name: "x"}, "ConfigMap n/x"},
		{objects.Key{Kind: "Namespace", Name: "x"}, "Namespace x"},
	} {
		if got := tc.key.String(); got != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
}

func TestKeysAreOrdered(t *testing.T) {
	t.Parallel()
	part := rapid.StringMatching("[ab]?")
	key := rapid.Custom(func(t *rapid.T) objects.Key {
		return objects.Key{Group: part.Draw(t, "group"), Kind: part.Draw(t, "kind"), Namespace: part.Draw(t, "namespace"), Name: part.Draw(t, "name")}
	})

	rapid.Check(t, func(t *rapid.T) {
		a, b, c := key.Draw(t, "a"), key.Draw(t, "b"), key.Draw(t, "c")
		if a.Compare(b) != -b.Compare(a) || (a.Compare(b) == 0) != (a == b) {
			t.Fatalf("%v and %v: %d", a, b, a.Compare(b))
		}
		if a.Compare(b) <= 0 && b.Compare(c) <= 0 && a.Compare(c) > 0 {
			t.Fatalf("%v, %v, %v are in no order", a, b, c)
		}
	})
}
