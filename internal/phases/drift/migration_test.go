package drift

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/test/require"
	"lockstep.run/lockstep/test/yamltest"
)

var configMapKind = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}

// patched applies a patch of tests and replacements in metadata to an object.
func patched(t *testing.T, live *unstructured.Unstructured, patch []byte) (*unstructured.Unstructured, error) {
	t.Helper()
	var operations []struct {
		Op, Path string
		Value    json.RawMessage
	}
	require.NoError(t, json.Unmarshal(patch, &operations))
	result := live.DeepCopy()
	for _, operation := range operations {
		name, inMetadata := strings.CutPrefix(operation.Path, "/metadata/")
		var value any
		if err := unmarshal(operation.Value, &value); err != nil || !inMetadata {
			t.Fatalf("operation on %s: %v", operation.Path, err)
		}
		metadata := fieldsAt(t, result.Object, "metadata")
		switch {
		case operation.Op == "test" && metadata[name] != value:
			return nil, fmt.Errorf("test of %s failed", operation.Path)
		case operation.Op == "replace":
			metadata[name] = value
		}
	}

	return result, nil
}

// TestMigrationRemovesFields takes over an object from an engine that wrote it by updates. Fields
// that leave the template have to leave the object.
func TestMigrationRemovesFields(t *testing.T) {
	t.Parallel()
	for _, legacy := range []string{"package-operator", "package-operator-manager", "remote-phase-manger"} {
		t.Run(legacy, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, "apis__apps__v1.json", deploymentKind)
			c.update(legacy, func(obj map[string]any) {
				for key, value := range c.object(deployment).Object {
					obj[key] = value
				}
				// The defaults of a POST belong to its manager as well.
				defaulted(obj)
				metadata := obj["metadata"].(map[string]any)
				metadata["uid"], metadata["resourceVersion"] = "u", "7"
				metadata["ownerReferences"] = append(metadata["ownerReferences"].([]any),
					map[string]any{"apiVersion": "a/v1", "kind": "ObjectSet", "name": "old", "uid": "u0"})
			})
			c.update("other", func(obj map[string]any) { fieldsAt(t, obj, "metadata", "labels")["other"] = "x" })
			live := c.live()
			if !HasUpdates(apinames.Default, live.GetManagedFields()) {
				t.Fatal("no migration is needed")
			}
			patch, needed, err := Migration(apinames.Default, live, Origin{Templates: []map[string]any{c.object(deployment).Object}, Next: c.object(deployment).Object})
			if err != nil || !needed {
				t.Fatalf("Migration = %t, %v", needed, err)
			}
			migrated, err := patched(t, live, patch)
			require.NoError(t, err)
			if HasUpdates(apinames.Default, migrated.GetManagedFields()) {
				t.Errorf("migration is still needed: %v", migrated.GetManagedFields())
			}
			require.NoError(t, c.fields.Update(migrated, "migration"))
			want := map[string]metav1.ManagedFieldsOperationType{"package-operator": "Apply", "other": "Update"}
			require.Equal(t, want, c.managers(), "managers")

			next := strings.Replace(deployment, "replicas: 2", "minReadySeconds: 3", 1)
			next = strings.Replace(next, "      - {name: second, image: \"init:2\"}\n", "", 1)
			next = strings.Replace(next, ", note: a", "", 1)
			c.apply("package-operator", next)
			after := c.live().Object
			if _, found := fieldsAt(t, after, "spec")["replicas"]; found {
				t.Error("a field that left the template stays")
			}
			if got := at(t, podSpec(t, after), "initContainers").([]any); len(got) != 1 {
				t.Errorf("an element that left the template stays: %v", got)
			}
			if _, found := fieldsAt(t, after, "metadata", "annotations")["note"]; found {
				t.Error("an annotation that left the template stays")
			}
			if got := at(t, after, "metadata", "ownerReferences").([]any); len(got) != 1 {
				t.Errorf("the reference to an earlier owner stays: %v", got)
			}
			require.Equal(t, "Always", podSpec(t, after)["restartPolicy"], "a default was removed")
			require.Equal(t, "x", fieldsAt(t, after, "metadata", "labels")["other"], "a label of others was removed")
		})
	}
}

func TestMigrationGuards(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "api__v1.json", configMapKind)
	c.update("package-operator", func(obj map[string]any) {
		obj["metadata"] = map[string]any{"name": "a", "uid": "u", "resourceVersion": "7"}
		obj["data"] = map[string]any{"a": "1"}
	})
	patch, _, err := Migration(apinames.Default, c.live(), Origin{Templates: []map[string]any{yamltest.Decode(t, `{data: {a: "1"}}`)}})
	require.NoError(t, err)
	for field, value := range map[string]string{"uid": "v", "resourceVersion": "8"} {
		other := c.live()
		fieldsAt(t, other.Object, "metadata")[field] = value
		if _, err := patched(t, other, patch); err == nil {
			t.Errorf("the patch applies to an object with another %s", field)
		}
	}
}

func entry(manager string, operation metav1.ManagedFieldsOperationType, version, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: operation, APIVersion: version, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}
}

func TestMigrationEntries(t *testing.T) {
	t.Parallel()
	const update, apply = metav1.ManagedFieldsOperationUpdate, metav1.ManagedFieldsOperationApply
	status := entry("package-operator", update, "v1", `{"f:status":{}}`)
	status.Subresource = "status"
	served := func(version string) bool { return version == "v1" }
	tests := []struct {
		reason  string
		entries []metav1.ManagedFieldsEntry
		want    []metav1.ManagedFieldsEntry // nil means no migration
	}{
		{"our Apply entry", []metav1.ManagedFieldsEntry{entry("package-operator", apply, "v1", `{"f:data":{"f:a":{}}}`)}, nil},
		{"entries of others", []metav1.ManagedFieldsEntry{entry("kubectl", update, "v1", `{"f:data":{"f:a":{}}}`)}, nil},
		{"our status", []metav1.ManagedFieldsEntry{status}, nil},
		{"an Update entry is cut down to the template",
			[]metav1.ManagedFieldsEntry{status, entry("package-operator", update, "v1", `{"f:data":{".":{},"f:a":{},"f:z":{}},"f:immutable":{}}`)},
			[]metav1.ManagedFieldsEntry{status, entry("package-operator", apply, "v1", `{"f:data":{".":{},"f:a":{}}}`)}},
		{"several become one, and an Apply entry keeps its fields",
			[]metav1.ManagedFieldsEntry{
				entry("package-operator", apply, "v1", `{"f:data":{"f:gone":{}}}`),
				entry("package-operator-manager", update, "v1", `{"f:data":{"f:a":{}}}`),
				entry("kubectl", update, "v1", `{"f:data":{"f:x":{}}}`),
				entry("remote-phase-manger", update, "v1", `{"f:data":{"f:b":{}}}`),
			},
			[]metav1.ManagedFieldsEntry{
				entry("kubectl", update, "v1", `{"f:data":{"f:x":{}}}`),
				entry("package-operator", apply, "v1", `{"f:data":{"f:a":{},"f:b":{},"f:gone":{}}}`),
			}},
		{"an Apply entry in a version that is not served",
			[]metav1.ManagedFieldsEntry{entry("package-operator", apply, "v1beta1", `{"f:data":{"f:a":{},"f:old":{}}}`)},
			[]metav1.ManagedFieldsEntry{entry("package-operator", apply, "v1", `{"f:data":{"f:a":{}}}`)}},
		{"an entry of others in a version that is not served",
			[]metav1.ManagedFieldsEntry{entry("kubectl", apply, "v1beta1", `{"f:data":{"f:x":{}}}`), entry("package-operator", apply, "v1", `{"f:data":{"f:a":{}}}`)},
			[]metav1.ManagedFieldsEntry{entry("kubectl", apply, "v1", `{"f:data":{"f:x":{}}}`), entry("package-operator", apply, "v1", `{"f:data":{"f:a":{}}}`)}},
		{"elements of lists",
			[]metav1.ManagedFieldsEntry{entry("package-operator", update, "v1",
				`{"f:list":{"k:{\"name\":\"a\",\"port\":80}":{".":{},"f:name":{},"f:x":{}},"k:{\"name\":\"b\",\"port\":80}":{".":{}}},`+
					`"f:metadata":{"f:finalizers":{"v:\"x\"":{},"v:\"y\"":{}},"f:ownerReferences":{"k:{\"uid\":\"u\"}":{}}}}`)},
			[]metav1.ManagedFieldsEntry{entry("package-operator", apply, "v1",
				`{"f:list":{"k:{\"name\":\"a\",\"port\":80}":{".":{},"f:name":{}}},`+
					`"f:metadata":{"f:finalizers":{"v:\"x\"":{}},"f:ownerReferences":{"k:{\"uid\":\"u\"}":{}}}}`)}},
		{"nothing in common", []metav1.ManagedFieldsEntry{entry("package-operator", update, "v1", `{"f:immutable":{}}`)},
			[]metav1.ManagedFieldsEntry{entry("package-operator", apply, "v1", `{}`)}},
	}

	templates := []map[string]any{
		yamltest.Decode(t, `{apiVersion: v1, kind: ConfigMap, metadata: {finalizers: [x]}, data: {a: "1"}, list: [{name: a}], immutable: null}`),
		yamltest.Decode(t, `{apiVersion: v1, kind: ConfigMap, data: {b: "2"}}`),
	}

	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			live := &unstructured.Unstructured{Object: yamltest.Decode(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, uid: u, resourceVersion: "7"}}`)}
			live.SetManagedFields(test.entries)
			patch, needed, err := Migration(apinames.Default, live, Origin{Templates: templates, Served: served})
			if err != nil || needed != (test.want != nil) {
				t.Fatalf("Migration = %t, %v", needed, err)
			}
			if !needed {
				return
			}
			migrated, err := patched(t, live, patch)
			require.NoError(t, err)
			text := func(entries []metav1.ManagedFieldsEntry) string {
				encoded, _ := json.MarshalIndent(entries, "", " ")
				return string(encoded)
			}
			require.Equal(t, text(test.want), text(migrated.GetManagedFields()), "managedFields")
		})
	}
}

func TestMigrationKeepsTheLatestTime(t *testing.T) {
	t.Parallel()
	old, late := metav1.Unix(100, 0), metav1.Unix(200, 0)
	entries := []metav1.ManagedFieldsEntry{
		entry("package-operator", metav1.ManagedFieldsOperationUpdate, "v1", `{}`), entry("package-operator", metav1.ManagedFieldsOperationApply, "v1", `{}`),
		entry("package-operator-manager", metav1.ManagedFieldsOperationUpdate, "v1", `{}`),
	}
	entries[0].Time, entries[1].Time = &late, &old
	migrated, err := migrate(apinames.Default, entries, "v1", Origin{})
	if err != nil || len(migrated) != 1 || !migrated[0].Time.Equal(&late) {
		t.Errorf("migrate = %v, %v, want one entry of %s", migrated, err, late)
	}
}

func TestMigrationOfMalformedFields(t *testing.T) {
	t.Parallel()
	live := &unstructured.Unstructured{Object: yamltest.Decode(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`)}
	live.SetManagedFields([]metav1.ManagedFieldsEntry{entry("package-operator", metav1.ManagedFieldsOperationUpdate, "v1", `{"k:x":{}}`)})
	if _, _, err := Migration(apinames.Default, live, Origin{}); err == nil || !strings.Contains(err.Error(), "ConfigMap") {
		t.Errorf("Migration = %v, want an error that names the object", err)
	}
}
