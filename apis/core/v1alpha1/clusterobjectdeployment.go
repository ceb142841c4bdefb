package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ClusterObjectDeployment rolls out objects of any scope and replaces revisions
// of them one by one. It is the cluster-scoped twin of ObjectDeployment.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName={clobjdeploy,cod},categories=lockstep,scope=Cluster
// +kubebuilder:printcolumn:name="Available",type="string",JSONPath=".status.conditions[?(@.type==\"Available\")].status"
// +kubebuilder:printcolumn:name="Revision",type="string",JSONPath=".status.revision"
// +kubebuilder:printcolumn:name="Version",type="string",JSONPath=".status.currentVersion"
// +kubebuilder:printcolumn:name="Image",type="string",JSONPath=".status.currentImage",priority=1
// +kubebuilder:printcolumn:name="Progressing",type="string",JSONPath=".status.conditions[?(@.type==\"Progressing\")].status"
// +kubebuilder:printcolumn:name="Paused",type="string",JSONPath=".status.conditions[?(@.type==\"Paused\")].status"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type ClusterObjectDeployment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ObjectDeploymentSpec   `json:"spec,omitempty"`
	Status ObjectDeploymentStatus `json:"status,omitempty"`
}

// ClusterObjectDeploymentList is a list of ClusterObjectDeployments.
// +kubebuilder:object:root=true
type ClusterObjectDeploymentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterObjectDeployment `json:"items"`
}

// ObjectDeploymentSpec returns the spec for reading and writing.
func (o *ClusterObjectDeployment) ObjectDeploymentSpec() *ObjectDeploymentSpec { return &o.Spec }

// ObjectDeploymentStatus returns the status for reading and writing.
func (o *ClusterObjectDeployment) ObjectDeploymentStatus() *ObjectDeploymentStatus { return &o.Status }

// StatusConditions returns the status conditions for reading and writing.
func (o *ClusterObjectDeployment) StatusConditions() *[]metav1.Condition { return &o.Status.Conditions }

// GenericObjectDeployments returns the items by their interface; they share
// memory with the list.
func (l *ClusterObjectDeploymentList) GenericObjectDeployments() []GenericObjectDeployment {
	items := make([]GenericObjectDeployment, len(l.Items))
	for i := range l.Items {
		items[i] = &l.Items[i]
	}
	return items
}
