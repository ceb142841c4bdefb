package drift_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"lockstep.run/lockstep/internal/apinames"
	"lockstep.run/lockstep/internal/phases/drift"
	"lockstep.run/lockstep/internal/testing/yamltest"
)

// entry is one of managedFields.
func entry(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: operation, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}
}

// migrated is what the patch of a migration makes of managedFields; nil where none is needed.
func migrated(t *testing.T, live *unstructured.Unstructured, from drift.Origin) []metav1.ManagedFieldsEntry {
	t.Helper()
	raw, needed, err := drift.Migration(apinames.Default, live, from)
	if err != nil {
		t.Fatal(err)
	}
	if !needed {
		return nil
	}
	var patch []struct {
		Path  string          `json:"path"`
		Value json.RawMessage `json:"value"`
	}
	var entries []metav1.ManagedFieldsEntry
	if err := json.Unmarshal(raw, &patch); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(patch[2].Value, &entries); err != nil {
		t.Fatal(err)
	}
	return entries
}

// TestLeaving is about what an apply takes away once managedFields are put right.
func TestLeaving(t *testing.T) {
	t.Parallel()
	const (
		before = `{"f:data":{".":{},"f:stays":{},"f:goes":{},"f:shared":{},"f:foreign":{}}}`
		now    = `{"f:data":{"f:stays":{}}}`
	)
	old := yamltest.Decode(t, `{"data":{"stays":"1","goes":"2","shared":"3"}}`)
	next := yamltest.Decode(t, `{"data":{"stays":"1"}}`)
	for _, tc := range []struct {
		reason  string
		entries []metav1.ManagedFieldsEntry
		want    string
		removed bool
	}{
		{
			reason: "a field of the POST that the template has no more is removed; fields of others stay, and those that we never wrote",
			entries: []metav1.ManagedFieldsEntry{
				entry("package-operator", "Update", before), entry("package-operator", "Apply", now),
				entry("someone", "Update", `{"f:data":{"f:shared":{}}}`),
			},
			want: `{"stays":"1","shared":"3","foreign":"4"}`, removed: true,
		},
		{
			reason:  "an Apply entry alone: the dry run has shown it all",
			entries: []metav1.ManagedFieldsEntry{entry("package-operator", "Apply", now)},
			want:    `{"stays":"1","goes":"2","shared":"3","foreign":"4"}`,
		},
		{
			reason:  "an Update entry of someone else is no business of ours",
			entries: []metav1.ManagedFieldsEntry{entry("someone", "Update", before)},
			want:    `{"stays":"1","goes":"2","shared":"3","foreign":"4"}`,
		},
	} {
		dry := &unstructured.Unstructured{Object: yamltest.Decode(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":{"stays":"1","goes":"2","shared":"3","foreign":"4"}}`)}
		dry.SetManagedFields(tc.entries)
		after, removed, err := drift.Leaving(apinames.Default, dry, migrated(t, dry, drift.Origin{Templates: []map[string]any{old, next}}))
		if err != nil {
			t.Fatal(err)
		}
		if removed != tc.removed {
			t.Errorf("%s: removed is %t", tc.reason, removed)
		}
		if diff := cmp.Diff(yamltest.Decode(t, tc.want), after.Object["data"]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
		}
		if dry.Object["data"].(map[string]any)["goes"] == nil {
			t.Errorf("%s: the answer to the dry run was changed", tc.reason)
		}
	}
}

// Elements of lists are removed by their names, and fields that others put into an element stay.
func TestLeavingElements(t *testing.T) {
	t.Parallel()
	list := func(text string) map[string]any { return yamltest.Decode(t, `{"spec":{"parts":`+text+`}}`) }
	dry := &unstructured.Unstructured{Object: list(`[{"name":"a","size":1},{"name":"b","size":2},{"name":"c","size":3}]`)}
	dry.SetManagedFields([]metav1.ManagedFieldsEntry{
		entry("package-operator", "Update", `{"f:spec":{"f:parts":{"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:size":{}},"k:{\"name\":\"b\"}":{".":{},"f:name":{},"f:size":{}},"k:{\"name\":\"c\"}":{".":{},"f:name":{},"f:size":{}}}}}`),
		entry("package-operator", "Apply", `{"f:spec":{"f:parts":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}}}}}`),
		entry("someone", "Update", `{"f:spec":{"f:parts":{"k:{\"name\":\"c\"}":{"f:name":{}}}}}`),
	})
	templates := []map[string]any{list(`[{"name":"a","size":1},{"name":"b","size":2},{"name":"c","size":3}]`), list(`[{"name":"a"}]`)}
	after, _, err := drift.Leaving(apinames.Default, dry, migrated(t, dry, drift.Origin{Templates: templates}))
	if err != nil {
		t.Fatal(err)
	}
	want := list(`[{"name":"a"},{"name":"c"}]`)
	if diff := cmp.Diff(want["spec"], after.Object["spec"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// At adoption all fields of the installer leave, but for those that others rely on.
func TestLeavingAtAdoption(t *testing.T) {
	t.Parallel()
	dry := &unstructured.Unstructured{Object: yamltest.Decode(t, `{"spec":{"replicas":3,"size":1,"old":2,"injected":4}}`)}
	dry.SetManagedFields([]metav1.ManagedFieldsEntry{
		entry("kubectl-client-side-apply", "Update", `{"f:spec":{".":{},"f:replicas":{},"f:size":{},"f:old":{}}}`),
		entry("package-operator", "Apply", `{"f:spec":{"f:size":{}}}`),
		entry("injector", "Update", `{"f:spec":{"f:injected":{}}}`),
	})
	template := yamltest.Decode(t, `{"spec":{"size":1}}`)
	for want, from := range map[string]drift.Origin{
		`{"replicas":3,"size":1,"injected":4}`:         {Adopting: template},
		`{"replicas":3,"size":1,"old":2,"injected":4}`: {Templates: []map[string]any{template}},
	} {
		after, _, err := drift.Leaving(apinames.Default, dry, migrated(t, dry, from))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(yamltest.Decode(t, want), after.Object["spec"]); diff != "" {
			t.Errorf("adopting %t (-want +got):\n%s", from.Adopting != nil, diff)
		}
	}
}
