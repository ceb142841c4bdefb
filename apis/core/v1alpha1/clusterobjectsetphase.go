package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ClusterObjectSetPhase is one phase of a ClusterObjectSet, handed to the
// controller of the class in its label. It is the cluster-scoped twin of
// ObjectSetPhase.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName={clobjsetphase,cosp},categories=lockstep,scope=Cluster
// +kubebuilder:printcolumn:name="Available",type="string",JSONPath=".status.conditions[?(@.type==\"Available\")].status"
// +kubebuilder:printcolumn:name="Paused",type="string",JSONPath=".status.conditions[?(@.type==\"Paused\")].status"
// +kubebuilder:printcolumn:name="Revision",type="string",JSONPath=".spec.revision"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type ClusterObjectSetPhase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ObjectSetPhaseSpec   `json:"spec,omitempty"`
	Status ObjectSetPhaseStatus `json:"status,omitempty"`
}

// ClusterObjectSetPhaseList is a list of ClusterObjectSetPhases.
// +kubebuilder:object:root=true
type ClusterObjectSetPhaseList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterObjectSetPhase `json:"items"`
}

// ObjectSetPhaseSpec returns the spec for reading and writing.
func (o *ClusterObjectSetPhase) ObjectSetPhaseSpec() *ObjectSetPhaseSpec { return &o.Spec }

// ObjectSetPhaseStatus returns the status for reading and writing.
func (o *ClusterObjectSetPhase) ObjectSetPhaseStatus() *ObjectSetPhaseStatus { return &o.Status }

// StatusConditions returns the status conditions for reading and writing.
func (o *ClusterObjectSetPhase) StatusConditions() *[]metav1.Condition { return &o.Status.Conditions }

// GenericObjectSetPhases returns the items by their interface; they share memory
// with the list.
func (l *ClusterObjectSetPhaseList) GenericObjectSetPhases() []GenericObjectSetPhase {
	items := make([]GenericObjectSetPhase, len(l.Items))
	for i := range l.Items {
		items[i] = &l.Items[i]
	}
	return items
}
