package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Package loads a package image into a namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName={pkg},categories=lockstep
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
// +kubebuilder:validation:XValidation:rule="!has(self.spec) || !has(self.spec.defaultNamespace)",message="defaultNamespace is for ClusterPackages; the objects of a Package are in its own namespace"
type Package struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   PackageSpec   `json:"spec,omitempty"`
	Status PackageStatus `json:"status,omitempty"`
}

// PackageList is a list of Packages.
// +kubebuilder:object:root=true
type PackageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Package `json:"items"`
}

// PackageSpec returns the spec for reading and writing.
func (p *Package) PackageSpec() *PackageSpec { return &p.Spec }

// PackageStatus returns the status for reading and writing.
func (p *Package) PackageStatus() *PackageStatus { return &p.Status }

// StatusConditions returns the status conditions for reading and writing.
func (p *Package) StatusConditions() *[]metav1.Condition { return &p.Status.Conditions }

// GenericPackages returns the items by their interface; they share memory with
// the list.
func (l *PackageList) GenericPackages() []GenericPackage {
	items := make([]GenericPackage, len(l.Items))
	for i := range l.Items {
		items[i] = &l.Items[i]
	}
	return items
}
