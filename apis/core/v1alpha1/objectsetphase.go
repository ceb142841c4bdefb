package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ObjectSetPhase is one phase of an ObjectSet, handed to the controller of the
// class in its label.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName={objsetphase,osp},categories=lockstep
// +kubebuilder:printcolumn:name="Available",type="string",JSONPath=".status.conditions[?(@.type==\"Available\")].status"
// +kubebuilder:printcolumn:name="Paused",type="string",JSONPath=".status.conditions[?(@.type==\"Paused\")].status"
// +kubebuilder:printcolumn:name="Revision",type="string",JSONPath=".spec.revision"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type ObjectSetPhase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ObjectSetPhaseSpec   `json:"spec,omitempty"`
	Status ObjectSetPhaseStatus `json:"status,omitempty"`
}

// ObjectSetPhaseList is a list of ObjectSetPhases.
// +kubebuilder:object:root=true
type ObjectSetPhaseList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ObjectSetPhase `json:"items"`
}

// ObjectSetPhaseSpec returns the spec for reading and writing.
func (o *ObjectSetPhase) ObjectSetPhaseSpec() *ObjectSetPhaseSpec { return &o.Spec }

// ObjectSetPhaseStatus returns the status for reading and writing.
func (o *ObjectSetPhase) ObjectSetPhaseStatus() *ObjectSetPhaseStatus { return &o.Status }

// StatusConditions returns the status conditions for reading and writing.
func (o *ObjectSetPhase) StatusConditions() *[]metav1.Condition { return &o.Status.Conditions }

// GenericObjectSetPhases returns the items by their interface; they share memory
// with the list.
func (l *ObjectSetPhaseList) GenericObjectSetPhases() []GenericObjectSetPhase {
	items := make([]GenericObjectSetPhase, len(l.Items))
	for i := range l.Items {
		items[i] = &l.Items[i]
	}
	return items
}
