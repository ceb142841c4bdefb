package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ObjectDeployment rolls out objects of one namespace and replaces revisions of
// them one by one.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName={objdeploy,od},categories=lockstep
// +kubebuilder:printcolumn:name="Available",type="string",JSONPath=".status.conditions[?(@.type==\"Available\")].status"
// +kubebuilder:printcolumn:name="Progressing",type="string",JSONPath=".status.conditions[?(@.type==\"Progressing\")].status"
// +kubebuilder:printcolumn:name="Paused",type="string",JSONPath=".status.conditions[?(@.type==\"Paused\")].status"
// +kubebuilder:printcolumn:name="Revision",type="string",JSONPath=".status.revision"
// +kubebuilder:printcolumn:name="Version",type="string",JSONPath=".status.currentVersion"
// +kubebuilder:printcolumn:name="Image",type="string",JSONPath=".status.currentImage",priority=1
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type ObjectDeployment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ObjectDeploymentSpec   `json:"spec,omitempty"`
	Status ObjectDeploymentStatus `json:"status,omitempty"`
}

// ObjectDeploymentList is a list of ObjectDeployments.
// +kubebuilder:object:root=true
type ObjectDeploymentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ObjectDeployment `json:"items"`
}

// ObjectDeploymentSpec returns the spec for reading and writing.
func (o *ObjectDeployment) ObjectDeploymentSpec() *ObjectDeploymentSpec { return &o.Spec }

// ObjectDeploymentStatus returns the status for reading and writing.
func (o *ObjectDeployment) ObjectDeploymentStatus() *ObjectDeploymentStatus { return &o.Status }

// StatusConditions returns the status conditions for reading and writing.
func (o *ObjectDeployment) StatusConditions() *[]metav1.Condition { return &o.Status.Conditions }

// GenericObjectDeployments returns the items by their interface; they share
// memory with the list.
func (l *ObjectDeploymentList) GenericObjectDeployments() []GenericObjectDeployment {
	items := make([]GenericObjectDeployment, len(l.Items))
	for i := range l.Items {
		items[i] = &l.Items[i]
	}
	return items
}
