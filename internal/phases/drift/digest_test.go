package drift

import (
	"encoding/hex"
	"math"
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/test/yamltest"
)

// TestDigestIsStable pins the digests of a release, because names of revisions depend on them.
func TestDigestIsStable(t *testing.T) {
	t.Parallel()
	// Another program computed these from the canonical JSON.
	for _, test := range []struct {
		value        any
		digest, hash string
	}{
		{nil, "74234e98afe7498fb5daf1f36ac2d78a", "cztqt7mx45"},
		// {"a":true,"b":[1,1.5,"x\"\u000a"]}
		{map[string]any{"b": []any{int64(1), 1.5, "x\"\n"}, "a": true}, "5723e25c5cb8ae9c0f9bec71ca5ddb53", "2rd8twrxqj"},
	} {
		digest := Digest(test.value)
		if got := hex.EncodeToString(digest[:]); got != test.digest {
			t.Errorf("Digest(%v) = %s, want %s", test.value, got, test.digest)
		}
		if got := Hash(test.value); got != test.hash {
			t.Errorf("Hash(%v) = %s, want %s", test.value, got, test.hash)
		}
	}
}

func TestDigestTypes(t *testing.T) {
	t.Parallel()
	type named struct {
		A string            `json:"a"`
		M map[string]string `json:"m,omitempty"`
		N *int32            `json:"n,omitempty"`
		F float64           `json:"f"`
	}

	number := int32(3)
	want := Digest(map[string]any{"a": "x", "m": map[string]any{"k": "v"}, "n": int64(3), "f": int64(2)})
	if got := Digest(named{A: "x", M: map[string]string{"k": "v"}, N: &number, F: 2}); got != want {
		t.Error("a struct and the map of the same JSON have different digests")
	}

	same := []any{int64(1), 1, int32(1), 1.0, uint8(1)}
	for _, value := range same {
		if Digest(value) != Digest(int64(1)) {
			t.Errorf("the digest of %T(1) differs from the digest of 1", value)
		}
	}

	different := []any{nil, "", "null", false, int64(0), int64(1), "1", 1.5, []any{}, map[string]any{}, []any{nil}, []any{[]any{}},
		map[string]any{"a": nil}, map[string]any{"a": ""}, "a", "A", "\x00", "\\u0000", math.MaxFloat64, int64(math.MaxInt64), float64(1 << 63)}
	seen := map[any]any{}
	for _, value := range different {
		digest := Digest(value)
		if other, twice := seen[digest]; twice {
			t.Errorf("%#v and %#v have the same digest", value, other)
		}
		seen[digest] = value
	}
}

func TestContentDigest(t *testing.T) {
	t.Parallel()
	const object = `{apiVersion: v1, kind: A, metadata: {name: a, labels: {app: x}}, spec: {b: 1}}`
	want := ContentDigest(apinames.Default, yamltest.Decode(t, object))
	stamped := yamltest.Decode(t, object)
	metadata := stamped["metadata"].(map[string]any)
	for _, label := range []string{corev1alpha1.CacheLabel, corev1alpha1.PackageLabel, corev1alpha1.PackageInstanceLabel,
		corev1alpha1.PackageVersionLabel, corev1alpha1.PackageProviderLabel} {
		metadata["labels"].(map[string]any)[label] = "x"
	}

	metadata["annotations"] = map[string]any{corev1alpha1.RevisionAnnotation: "7"}
	metadata["ownerReferences"] = []any{map[string]any{"uid": "u"}}
	before := copyOf(stamped)
	if ContentDigest(apinames.Default, stamped) != want {
		t.Error("what the engine puts on changes the content")
	}
	if !same(before, stamped) {
		t.Errorf("ContentDigest changed the object: %v", stamped)
	}

	for _, changed := range []string{
		`{apiVersion: v1, kind: A, metadata: {name: a, labels: {app: y}}, spec: {b: 1}}`,
		`{apiVersion: v1, kind: A, metadata: {name: a, labels: {app: x}, annotations: {n: x}}, spec: {b: 1}}`,
		`{apiVersion: v1, kind: A, metadata: {name: a, labels: {app: x}}, spec: {b: 2}}`,
		`{apiVersion: v1, kind: A, metadata: {name: a, labels: {app: x}}, spec: {b: 1, c: {}}}`,
		`{apiVersion: v2, kind: A, metadata: {name: a, labels: {app: x}}, spec: {b: 1}}`,
	} {
		if ContentDigest(apinames.Default, yamltest.Decode(t, changed)) == want {
			t.Errorf("%s has the same content", changed)
		}
	}

	only := yamltest.Decode(t, `{metadata: {labels: {package-operator.run/version: "1"}}}`)
	if ContentDigest(apinames.Default, only) != ContentDigest(apinames.Default, yamltest.Decode(t, `{metadata: {}}`)) {
		t.Error("labels of ours alone are content")
	}
}
