package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ObjectSlice holds objects of an ObjectSet that is too large for one API object.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName={objslice,osl},categories=lockstep
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type ObjectSlice struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Objects of the slice, in the order in which they were written.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="objects is immutable"
	Objects []ObjectSetObject `json:"objects"`
}

// ObjectSliceList is a list of ObjectSlices.
// +kubebuilder:object:root=true
type ObjectSliceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ObjectSlice `json:"items"`
}

// SliceObjects returns the slice's objects for reading and writing.
func (s *ObjectSlice) SliceObjects() *[]ObjectSetObject { return &s.Objects }

// GenericObjectSlices returns the items by their interface; they share memory
// with the list.
func (l *ObjectSliceList) GenericObjectSlices() []GenericObjectSlice {
	items := make([]GenericObjectSlice, len(l.Items))
	for i := range l.Items {
		items[i] = &l.Items[i]
	}
	return items
}
