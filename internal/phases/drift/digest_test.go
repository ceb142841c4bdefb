package drift

import (
	"encoding/hex"
	"fmt"
	"math"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/test/require"
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
		require.Equal(t, test.digest, hex.EncodeToString(digest[:]), fmt.Sprintf("Digest(%v)", test.value))
		require.Equal(t, test.hash, Hash(test.value), fmt.Sprintf("Hash(%v)", test.value))
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
	require.Equal(t, want, Digest(named{A: "x", M: map[string]string{"k": "v"}, N: &number, F: 2}), "a struct and the map of the same JSON have different digests")

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
	require.Equal(t, want, ContentDigest(apinames.Default, stamped), "what the engine puts on changes the content")
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

// TestExceeds distinguishes a former content on an object from fields that others and the API
// server added, using the API server's own managedFields.
func TestExceeds(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "apis__apps__v1.json", deploymentKind)
	c.apply("package-operator", deployment)
	template := c.object(deployment).Object
	c.update("kubelet", func(obj map[string]any) {
		defaulted(obj)
		fieldsAt(t, obj, "metadata", "labels")["theirs"] = "1"
		fieldsAt(t, obj, "spec")["paused"] = true
	})
	if Exceeds(apinames.Default, template, c.live().GetManagedFields()) {
		t.Error("the applied content is the template")
	}

	for reason, remove := range map[string]func(obj map[string]any){
		"a label":         func(obj map[string]any) { delete(fieldsAt(t, obj, "metadata", "labels"), "app") },
		"a field":         func(obj map[string]any) { delete(fieldsAt(t, obj, "spec"), "replicas") },
		"a part of a map": func(obj map[string]any) { delete(fieldsAt(t, obj, "spec", "template", "spec"), "nodeSelector") },
		"a field in a list": func(obj map[string]any) {
			delete(fieldsAt(t, obj, "spec", "template", "spec", "containers", 0), "args")
		},
		"an element of a list": func(obj map[string]any) {
			containers := fieldsAt(t, obj, "spec", "template", "spec", "containers", 0)
			containers["env"] = at(t, containers, "env").([]any)[:1]
		},
	} {
		former := copyOf(template)
		remove(former)
		if !Exceeds(apinames.Default, former, c.live().GetManagedFields()) {
			t.Errorf("%s left the template", reason)
		}
	}

	null := copyOf(template)
	fieldsAt(t, null, "spec")["replicas"] = nil
	delete(fieldsAt(t, null, "metadata"), "ownerReferences")
	if Exceeds(apinames.Default, null, c.live().GetManagedFields()) {
		t.Error("a null is not a removed field, and owner references are ignored")
	}

	null["apiVersion"] = "apps/v2"
	delete(null, "spec")
	if Exceeds(apinames.Default, null, c.live().GetManagedFields()) {
		t.Error("an entry in another version is ignored")
	}
}

// The entries are those that the API machinery reads.
func TestManagedFields(t *testing.T) {
	t.Parallel()
	live := &unstructured.Unstructured{}
	require.NoError(t, unmarshal([]byte(`{"metadata":{"managedFields":[
		{"manager":"kubectl","operation":"Update","apiVersion":"v1","time":"2026-01-02T03:04:05Z","fieldsType":"FieldsV1","fieldsV1":{"f:data":{".":{},"f:b":{},"f:a":{"k:{\"port\":80}":{}}}}},
		{"manager":"kubelet","operation":"Update","apiVersion":"v1","subresource":"status","fieldsType":"FieldsV1","fieldsV1":{"f:status":{"v:\"a\\\"b\"":{}}}},
		{"manager":"none","operation":"Apply","apiVersion":"v2"}]}}`), &live.Object))
	require.Equal(t, live.GetManagedFields(), ManagedFields(live), "the entries")
	require.Equal(t, 0, len(ManagedFields(&unstructured.Unstructured{})), "the entries of an object without any")
}

func TestOwnedByOthers(t *testing.T) {
	t.Parallel()
	template := yamltest.Decode(t, "{hooks: [{name: x, policy: Ignore}], spec: {a: 1}}")
	live := &unstructured.Unstructured{Object: yamltest.Decode(t, "{hooks: [{name: other}, {name: x, policy: Fail, client: {ca: b}}], spec: {a: 2, list: [{c: d}]}}")}
	live.SetManagedFields([]metav1.ManagedFieldsEntry{
		{Manager: corev1alpha1.FieldManager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:a":{}}}`)},
		{Manager: "theirs", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(
			`{"f:hooks":{"k:{\"name\":\"x\"}":{"f:policy":{},"f:client":{"f:ca":{}}}},"f:spec":{"f:list":{}}}`)},
		{Manager: "unreadable", FieldsV1: metav1.NewFieldsV1(`{"x:y":{}}`)},
	})

	owned := OwnedByOthers(apinames.Default, template, live, false)
	for pointer, want := range map[string]bool{
		"/hooks/0/policy": true, "/hooks/0/client": true, "/hooks/0/client/ca": true, "/hooks/0/client/other": false, "/hooks/2/policy": false,
		"/spec/a": false, "/spec/list": true, "/spec/list/0/c": false, "/none/a": false, "/spec/a/b": false,
	} {
		path, err := apinames.Default.ParseFieldPointer(pointer)
		require.NoError(t, err)
		require.Equal(t, want, owned(path), pointer)
	}
}
