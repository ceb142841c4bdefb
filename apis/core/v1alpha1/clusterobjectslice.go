package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ClusterObjectSlice holds objects of a ClusterObjectSet that is too large for
// one API object. It is the cluster-scoped twin of ObjectSlice.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName={clobjslice,cosl},categories=lockstep,scope=Cluster
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type ClusterObjectSlice struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Objects of the slice, in the order in which they were written.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="objects is immutable"
	Objects []ObjectSetObject `json:"objects"`
}

// ClusterObjectSliceList is a list of ClusterObjectSlices.
// +kubebuilder:object:root=true
type ClusterObjectSliceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterObjectSlice `json:"items"`
}

// SliceObjects returns the slice's objects for reading and writing.
func (s *ClusterObjectSlice) SliceObjects() *[]ObjectSetObject { return &s.Objects }

// GenericObjectSlices returns the items by their interface; they share memory
// with the list.
func (l *ClusterObjectSliceList) GenericObjectSlices() []GenericObjectSlice {
	items := make([]GenericObjectSlice, len(l.Items))
	for i := range l.Items {
		items[i] = &l.Items[i]
	}
	return items
}
