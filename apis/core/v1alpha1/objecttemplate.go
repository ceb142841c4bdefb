package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ObjectTemplate renders one object of its namespace from other objects of it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName={objtmpl,ot},categories=lockstep
// +kubebuilder:printcolumn:name="Invalid",type="string",JSONPath=".status.conditions[?(@.type==\"package-operator.run/Invalid\")].status"
type ObjectTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ObjectTemplateSpec   `json:"spec,omitempty"`
	Status ObjectTemplateStatus `json:"status,omitempty"`
}

// ObjectTemplateList is a list of ObjectTemplates.
// +kubebuilder:object:root=true
type ObjectTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ObjectTemplate `json:"items"`
}

// ObjectTemplateSpec returns the spec for reading and writing.
func (o *ObjectTemplate) ObjectTemplateSpec() *ObjectTemplateSpec { return &o.Spec }

// ObjectTemplateStatus returns the status for reading and writing.
func (o *ObjectTemplate) ObjectTemplateStatus() *ObjectTemplateStatus { return &o.Status }

// StatusConditions returns the status conditions for reading and writing.
func (o *ObjectTemplate) StatusConditions() *[]metav1.Condition { return &o.Status.Conditions }

// GenericObjectTemplates returns the items by their interface; they share memory
// with the list.
func (l *ObjectTemplateList) GenericObjectTemplates() []GenericObjectTemplate {
	items := make([]GenericObjectTemplate, len(l.Items))
	for i := range l.Items {
		items[i] = &l.Items[i]
	}
	return items
}
