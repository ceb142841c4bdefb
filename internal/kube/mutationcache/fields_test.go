package mutationcache

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/require"
)

// A Package keeps the last writer of its spec, also if it is trimmed again.
func TestTrimFields(t *testing.T) {
	t.Parallel()
	at := func(second int64) *metav1.Time { return &metav1.Time{Time: time.Unix(second, 0)} }
	entry := func(manager, subresource, fields string, when *metav1.Time) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Subresource: subresource, Time: when, FieldsV1: metav1.NewFieldsV1(fields),
		}
	}
	entries := []metav1.ManagedFieldsEntry{
		entry("kubectl-create", "", `{"f:spec":{"f:image":{}}}`, at(1)),
		entry("kubectl-apply", "", `{"f:spec":{"f:config":{}}}`, at(2)),
		entry("kubectl-edit", "", `{"f:spec":{"f:paused":{}}}`, at(2)),
		entry("lockstep", "", `{"f:metadata":{"f:finalizers":{}}}`, at(3)),
		entry("lockstep", "status", `{"f:status":{"f:spec":{}}}`, at(4)),
	}
	pkg := &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{ManagedFields: entries}}
	want := []metav1.ManagedFieldsEntry{{Manager: "kubectl-edit", Operation: metav1.ManagedFieldsOperationUpdate, Time: at(2)}}
	for range 2 {
		TrimFields(pkg)
		require.Equal(t, want, pkg.ManagedFields)
	}
	forged := &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{ManagedFields: append(entries,
		entry("another-name", "", `{"f:spec":{}}`, &metav1.Time{Time: time.Now().Add(time.Hour)}))}}
	if TrimFields(forged); forged.ManagedFields != nil {
		t.Errorf("of the future: %+v", forged.ManagedFields)
	}
	set := &corev1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{ManagedFields: entries}}
	if TrimFields(set); set.ManagedFields != nil {
		t.Errorf("of another kind: %+v", set.ManagedFields)
	}
}
