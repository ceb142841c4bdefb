package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ClusterObjectTemplate renders one object from objects of any scope.
// It is the cluster-scoped twin of ObjectTemplate.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName={clobjtmpl,cot},categories=lockstep,scope=Cluster
// +kubebuilder:printcolumn:name="Invalid",type="string",JSONPath=".status.conditions[?(@.type==\"package-operator.run/Invalid\")].status"
type ClusterObjectTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ObjectTemplateSpec   `json:"spec,omitempty"`
	Status ObjectTemplateStatus `json:"status,omitempty"`
}

// ClusterObjectTemplateList is a list of ClusterObjectTemplates.
// +kubebuilder:object:root=true
type ClusterObjectTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterObjectTemplate `json:"items"`
}

// ObjectTemplateSpec returns the spec for reading and writing.
func (o *ClusterObjectTemplate) ObjectTemplateSpec() *ObjectTemplateSpec { return &o.Spec }

// ObjectTemplateStatus returns the status for reading and writing.
func (o *ClusterObjectTemplate) ObjectTemplateStatus() *ObjectTemplateStatus { return &o.Status }

// StatusConditions returns the status conditions for reading and writing.
func (o *ClusterObjectTemplate) StatusConditions() *[]metav1.Condition { return &o.Status.Conditions }

// GenericObjectTemplates returns the items by their interface; they share memory
// with the list.
func (l *ClusterObjectTemplateList) GenericObjectTemplates() []GenericObjectTemplate {
	items := make([]GenericObjectTemplate, len(l.Items))
	for i := range l.Items {
		items[i] = &l.Items[i]
	}
	return items
}
