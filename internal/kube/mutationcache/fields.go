package mutationcache

import (
	"bytes"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
)

// TrimFields drops the managed fields of an object. A Package keeps the entry of the last writer of
// the spec, without its fields: it shows who wrote the spec and when.
func TrimFields(object metav1.Object) {
	entries := object.GetManagedFields()
	if len(entries) == 0 {
		return
	}

	object.SetManagedFields(nil)
	if _, is := object.(corev1alpha1.GenericPackage); !is {
		return
	}
	if last := lastOfSpec(entries); last != nil {
		object.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: last.Manager, Operation: last.Operation, Time: last.Time}})
	}
}

// lastOfSpec returns the latest entry with fields of the spec, or the last one of several in the
// same second; nil for none. An entry without fields was trimmed before. Clients can write these
// entries. If one is in the future, the result is nil, because it would remain the latest forever.
func lastOfSpec(entries []metav1.ManagedFieldsEntry) (last *metav1.ManagedFieldsEntry) {
	for i := range entries {
		e := &entries[i]
		writes := e.FieldsV1 == nil || bytes.Contains(e.FieldsV1.GetRawBytes(), []byte(`"f:spec":`))
		if e.Subresource == "" && writes && e.Time != nil && (last == nil || !e.Time.Before(last.Time)) {
			last = e
		}
	}
	if last != nil && time.Until(last.Time.Time) > limits.ClockSkew {
		return nil
	}
	return last
}
