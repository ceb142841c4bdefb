package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ClusterPackageRepository offers packages to ClusterPackages, and to the Packages of
// all namespaces or of those that it selects. It is the cluster-scoped twin of
// PackageRepository.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName={clpkgrepo},categories=lockstep,scope=Cluster
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status"
// +kubebuilder:printcolumn:name="Packages",type="integer",JSONPath=".status.packages"
// +kubebuilder:printcolumn:name="Versions",type="integer",JSONPath=".status.versions"
// +kubebuilder:printcolumn:name="Revision",type="string",JSONPath=".status.artifact.revision",priority=1
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type ClusterPackageRepository struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   PackageRepositorySpec   `json:"spec"`
	Status PackageRepositoryStatus `json:"status,omitempty"`
}

// ClusterPackageRepositoryList is a list of ClusterPackageRepositories.
// +kubebuilder:object:root=true
type ClusterPackageRepositoryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterPackageRepository `json:"items"`
}

// RepositorySpec returns the spec for reading and writing.
func (r *ClusterPackageRepository) RepositorySpec() *PackageRepositorySpec { return &r.Spec }

// RepositoryStatus returns the status for reading and writing.
func (r *ClusterPackageRepository) RepositoryStatus() *PackageRepositoryStatus { return &r.Status }

// StatusConditions returns the status conditions for reading and writing.
func (r *ClusterPackageRepository) StatusConditions() *[]metav1.Condition {
	return &r.Status.Conditions
}

// GenericRepositories returns the items by their interface; they share memory with
// the list.
func (l *ClusterPackageRepositoryList) GenericRepositories() []GenericPackageRepository {
	items := make([]GenericPackageRepository, len(l.Items))
	for i := range l.Items {
		items[i] = &l.Items[i]
	}
	return items
}
