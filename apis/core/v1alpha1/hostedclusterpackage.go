package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// HostedClusterPackage rolls a package out to HyperShift's hosted clusters.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName={hcpkg},categories=lockstep,scope=Cluster
// +kubebuilder:printcolumn:name="Available",type="string",JSONPath=".status.conditions[?(@.type==\"Available\")].status"
// +kubebuilder:printcolumn:name="Progressing",type="string",JSONPath=".status.conditions[?(@.type==\"Progressing\")].status"
// +kubebuilder:printcolumn:name="HasPausedPackage",type="string",JSONPath=".status.conditions[?(@.type==\"HasPausedPackage\")].status"
// +kubebuilder:printcolumn:name="ObservedGeneration",type="string",JSONPath=".status.observedGeneration"
// +kubebuilder:printcolumn:name="Image",type="string",JSONPath=".spec.template.spec.image",priority=1
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type HostedClusterPackage struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   HostedClusterPackageSpec   `json:"spec,omitempty"`
	Status HostedClusterPackageStatus `json:"status,omitempty"`
}

// HostedClusterPackageList is a list of HostedClusterPackages.
// +kubebuilder:object:root=true
type HostedClusterPackageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []HostedClusterPackage `json:"items"`
}

// StatusConditions returns the status conditions for reading and writing.
func (p *HostedClusterPackage) StatusConditions() *[]metav1.Condition { return &p.Status.Conditions }
