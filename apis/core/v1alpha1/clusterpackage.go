package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ClusterPackage loads a package image into the cluster; its objects can be cluster-scoped or in
// any namespace. It is the cluster-scoped twin of Package.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName={clpkg},categories=lockstep,scope=Cluster
// +kubebuilder:printcolumn:name="Available",type="string",JSONPath=".status.conditions[?(@.type==\"Available\")].status"
// +kubebuilder:printcolumn:name="Progressing",type="string",JSONPath=".status.conditions[?(@.type==\"Progressing\")].status"
// +kubebuilder:printcolumn:name="Unpacked",type="string",JSONPath=".status.conditions[?(@.type==\"Unpacked\")].status"
// +kubebuilder:printcolumn:name="Invalid",type="string",JSONPath=".status.conditions[?(@.type==\"Invalid\")].status"
// +kubebuilder:printcolumn:name="Revision",type="string",JSONPath=".status.revision"
// +kubebuilder:printcolumn:name="Package",type="string",JSONPath=".status.resolved.catalogName"
// +kubebuilder:printcolumn:name="Version",type="string",JSONPath=".status.currentVersion"
// +kubebuilder:printcolumn:name="State",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].reason"
// +kubebuilder:printcolumn:name="Image",type="string",JSONPath=".status.currentImage",priority=1
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type ClusterPackage struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   PackageSpec   `json:"spec,omitempty"`
	Status PackageStatus `json:"status,omitempty"`
}

// ClusterPackageList is a list of ClusterPackages.
// +kubebuilder:object:root=true
type ClusterPackageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterPackage `json:"items"`
}

// PackageSpec returns the spec for reading and writing.
func (p *ClusterPackage) PackageSpec() *PackageSpec { return &p.Spec }

// PackageStatus returns the status for reading and writing.
func (p *ClusterPackage) PackageStatus() *PackageStatus { return &p.Status }

// StatusConditions returns the status conditions for reading and writing.
func (p *ClusterPackage) StatusConditions() *[]metav1.Condition { return &p.Status.Conditions }

// GenericPackages returns the items by their interface; they share memory with
// the list.
func (l *ClusterPackageList) GenericPackages() []GenericPackage {
	items := make([]GenericPackage, len(l.Items))
	for i := range l.Items {
		items[i] = &l.Items[i]
	}
	return items
}
