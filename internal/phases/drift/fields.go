package drift

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ManagedFields returns the managedFields of a live object. GetManagedFields copies them first and
// converts them by reflection, which takes as long as the comparison of an object with its
// template. A watch leaves the fields of an entry as JSON.
func ManagedFields(live *unstructured.Unstructured) []metav1.ManagedFieldsEntry {
	metadata, _ := live.Object["metadata"].(map[string]any)
	items, _ := metadata["managedFields"].([]any)
	entries := make([]metav1.ManagedFieldsEntry, 0, len(items))
	e := encoders.Get().(*encoder)
	defer encoders.Put(e)
	defer e.release()
	for _, item := range items {
		from, isMap := item.(map[string]any)
		if !isMap {
			continue
		}
		entry := metav1.ManagedFieldsEntry{
			Manager: text(from["manager"]), Operation: metav1.ManagedFieldsOperationType(text(from["operation"])),
			APIVersion: text(from["apiVersion"]), FieldsType: text(from["fieldsType"]), Subresource: text(from["subresource"]),
		}
		if at, err := time.Parse(time.RFC3339, text(from["time"])); err == nil {
			entry.Time = &metav1.Time{Time: at.Local()}
		}
		switch fields := from["fieldsV1"].(type) {
		case string:
			entry.FieldsV1 = metav1.NewFieldsV1(fields)
		case map[string]any:
			e.buf = e.buf[:0]
			e.value(fields)
			entry.FieldsV1 = metav1.NewFieldsV1(string(e.buf))
		}
		entries = append(entries, entry)
	}

	return entries
}
