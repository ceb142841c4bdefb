package drift

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/test/require"
	"lockstep.run/lockstep/test/yamltest"
)

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
		if got := owned(path); got != want {
			t.Errorf("%s: %v, want %v", pointer, got, want)
		}
	}
}
