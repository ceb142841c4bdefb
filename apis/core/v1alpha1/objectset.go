package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ObjectSet is one revision of objects of one namespace, rolled out phase by
// phase.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName={objset,os},categories=lockstep
// +kubebuilder:printcolumn:name="Available",type="string",JSONPath=".status.conditions[?(@.type==\"Available\")].status"
// +kubebuilder:printcolumn:name="Paused",type="string",JSONPath=".status.conditions[?(@.type==\"Paused\")].status"
// +kubebuilder:printcolumn:name="Archived",type="string",JSONPath=".status.conditions[?(@.type==\"Archived\")].status",priority=1
// +kubebuilder:printcolumn:name="Succeeded",type="string",JSONPath=".status.conditions[?(@.type==\"Succeeded\")].status",priority=1
// +kubebuilder:printcolumn:name="InTransition",type="string",JSONPath=".status.conditions[?(@.type==\"InTransition\")].status",priority=1
// +kubebuilder:printcolumn:name="Waiting",type="string",JSONPath=".status.conditions[?(@.type==\"AwaitingActivation\")].status",priority=1
// +kubebuilder:printcolumn:name="Revision",type="string",JSONPath=".spec.revision"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type ObjectSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ObjectSetSpec   `json:"spec,omitempty"`
	Status ObjectSetStatus `json:"status,omitempty"`
}

// ObjectSetList is a list of ObjectSets.
// +kubebuilder:object:root=true
type ObjectSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ObjectSet `json:"items"`
}

// ObjectSetSpec returns the spec for reading and writing.
func (o *ObjectSet) ObjectSetSpec() *ObjectSetSpec { return &o.Spec }

// ObjectSetStatus returns the status for reading and writing.
func (o *ObjectSet) ObjectSetStatus() *ObjectSetStatus { return &o.Status }

// StatusConditions returns the status conditions for reading and writing.
func (o *ObjectSet) StatusConditions() *[]metav1.Condition { return &o.Status.Conditions }

// GenericObjectSets returns the items by their interface; they share memory with
// the list.
func (l *ObjectSetList) GenericObjectSets() []GenericObjectSet {
	items := make([]GenericObjectSet, len(l.Items))
	for i := range l.Items {
		items[i] = &l.Items[i]
	}
	return items
}
