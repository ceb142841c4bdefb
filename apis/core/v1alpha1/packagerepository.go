package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PackageRepository offers packages to the Packages of its namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName={pkgrepo},categories=lockstep
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status"
// +kubebuilder:printcolumn:name="Packages",type="integer",JSONPath=".status.packages"
// +kubebuilder:printcolumn:name="Versions",type="integer",JSONPath=".status.versions"
// +kubebuilder:printcolumn:name="Revision",type="string",JSONPath=".status.artifact.revision",priority=1
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.namespaceSelector)",message="namespaceSelector is for ClusterPackageRepositories; a PackageRepository is for its own namespace"
type PackageRepository struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   PackageRepositorySpec   `json:"spec"`
	Status PackageRepositoryStatus `json:"status,omitempty"`
}

// PackageRepositoryList is a list of PackageRepositories.
// +kubebuilder:object:root=true
type PackageRepositoryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PackageRepository `json:"items"`
}

// RepositorySpec returns the spec for reading and writing.
func (r *PackageRepository) RepositorySpec() *PackageRepositorySpec { return &r.Spec }

// RepositoryStatus returns the status for reading and writing.
func (r *PackageRepository) RepositoryStatus() *PackageRepositoryStatus { return &r.Status }

// StatusConditions returns the status conditions for reading and writing.
func (r *PackageRepository) StatusConditions() *[]metav1.Condition { return &r.Status.Conditions }

// GenericRepositories returns the items by their interface; they share memory with
// the list.
func (l *PackageRepositoryList) GenericRepositories() []GenericPackageRepository {
	items := make([]GenericPackageRepository, len(l.Items))
	for i := range l.Items {
		items[i] = &l.Items[i]
	}
	return items
}
