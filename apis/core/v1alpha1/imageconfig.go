package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ImageConfig sets the place and credentials that images with a prefix are pulled with,
// and the signatures that they need.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName={imgcfg},categories=lockstep,scope=Cluster
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].reason"
// +kubebuilder:printcolumn:name="Mode",type="string",JSONPath=".spec.verification.mode"
// +kubebuilder:printcolumn:name="Rewrite",type="string",JSONPath=".spec.rewrite.prefix",priority=1
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type ImageConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ImageConfigSpec   `json:"spec"`
	Status ImageConfigStatus `json:"status,omitempty"`
}

// ImageConfigList is a list of ImageConfigs.
// +kubebuilder:object:root=true
type ImageConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ImageConfig `json:"items"`
}

// StatusConditions returns the status conditions for reading and writing.
func (c *ImageConfig) StatusConditions() *[]metav1.Condition { return &c.Status.Conditions }
