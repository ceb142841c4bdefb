package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ClusterAvailablePackage is a package that the ClusterPackageRepositories offer. It is
// the cluster-scoped twin of AvailablePackage.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName={clavpkg},categories=lockstep,scope=Cluster
// +kubebuilder:printcolumn:name="Package",type="string",JSONPath=".spec.packageName"
// +kubebuilder:printcolumn:name="Description",type="string",JSONPath=".spec.display.shortDescription"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type ClusterAvailablePackage struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec AvailablePackageSpec `json:"spec"`
}

// ClusterAvailablePackageList is a list of ClusterAvailablePackages.
// +kubebuilder:object:root=true
type ClusterAvailablePackageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterAvailablePackage `json:"items"`
}

// AvailableSpec returns the spec for reading and writing.
func (p *ClusterAvailablePackage) AvailableSpec() *AvailablePackageSpec { return &p.Spec }

// GenericAvailablePackages returns the items by their interface; they share memory
// with the list.
func (l *ClusterAvailablePackageList) GenericAvailablePackages() []GenericAvailablePackage {
	items := make([]GenericAvailablePackage, len(l.Items))
	for i := range l.Items {
		items[i] = &l.Items[i]
	}
	return items
}
