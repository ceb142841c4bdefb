package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// AvailablePackage is a package that the PackageRepositories of its namespace
// offer.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName={avpkg},categories=lockstep
// +kubebuilder:printcolumn:name="Package",type="string",JSONPath=".spec.packageName"
// +kubebuilder:printcolumn:name="Description",type="string",JSONPath=".spec.display.shortDescription"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type AvailablePackage struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec AvailablePackageSpec `json:"spec"`
}

// AvailablePackageList is a list of AvailablePackages.
// +kubebuilder:object:root=true
type AvailablePackageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []AvailablePackage `json:"items"`
}

// AvailableSpec returns the spec for reading and writing.
func (p *AvailablePackage) AvailableSpec() *AvailablePackageSpec { return &p.Spec }

// GenericAvailablePackages returns the items by their interface; they share memory
// with the list.
func (l *AvailablePackageList) GenericAvailablePackages() []GenericAvailablePackage {
	items := make([]GenericAvailablePackage, len(l.Items))
	for i := range l.Items {
		items[i] = &l.Items[i]
	}
	return items
}
