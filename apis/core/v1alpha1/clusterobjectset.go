package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ClusterObjectSet is one revision of objects of any scope, rolled out phase by
// phase. It is the cluster-scoped twin of ObjectSet.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName={clobjset,cos},categories=lockstep,scope=Cluster
// +kubebuilder:printcolumn:name="Available",type="string",JSONPath=".status.conditions[?(@.type==\"Available\")].status"
// +kubebuilder:printcolumn:name="Paused",type="string",JSONPath=".status.conditions[?(@.type==\"Paused\")].status"
// +kubebuilder:printcolumn:name="Archived",type="string",JSONPath=".status.conditions[?(@.type==\"Archived\")].status",priority=1
// +kubebuilder:printcolumn:name="Succeeded",type="string",JSONPath=".status.conditions[?(@.type==\"Succeeded\")].status",priority=1
// +kubebuilder:printcolumn:name="InTransition",type="string",JSONPath=".status.conditions[?(@.type==\"InTransition\")].status",priority=1
// +kubebuilder:printcolumn:name="Waiting",type="string",JSONPath=".status.conditions[?(@.type==\"AwaitingActivation\")].status",priority=1
// +kubebuilder:printcolumn:name="Revision",type="string",JSONPath=".spec.revision"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type ClusterObjectSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ObjectSetSpec   `json:"spec,omitempty"`
	Status ObjectSetStatus `json:"status,omitempty"`
}

// ClusterObjectSetList is a list of ClusterObjectSets.
// +kubebuilder:object:root=true
type ClusterObjectSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterObjectSet `json:"items"`
}

// ObjectSetSpec returns the spec for reading and writing.
func (o *ClusterObjectSet) ObjectSetSpec() *ObjectSetSpec { return &o.Spec }

// ObjectSetStatus returns the status for reading and writing.
func (o *ClusterObjectSet) ObjectSetStatus() *ObjectSetStatus { return &o.Status }

// StatusConditions returns the status conditions for reading and writing.
func (o *ClusterObjectSet) StatusConditions() *[]metav1.Condition { return &o.Status.Conditions }

// GenericObjectSets returns the items by their interface; they share memory with
// the list.
func (l *ClusterObjectSetList) GenericObjectSets() []GenericObjectSet {
	items := make([]GenericObjectSet, len(l.Items))
	for i := range l.Items {
		items[i] = &l.Items[i]
	}
	return items
}
