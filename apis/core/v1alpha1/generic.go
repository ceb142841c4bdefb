package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Object is an object of any kind of this package.
//
// +kubebuilder:object:generate=false
type Object interface {
	metav1.Object
	runtime.Object
}

// Conditioned is a kind with status conditions.
//
// +kubebuilder:object:generate=false
type Conditioned interface {
	Object
	// StatusConditions returns the conditions for reading and writing.
	StatusConditions() *[]metav1.Condition
}

// GenericPackage is a Package or a ClusterPackage.
//
// +kubebuilder:object:generate=false
type GenericPackage interface {
	Conditioned
	PackageSpec() *PackageSpec
	PackageStatus() *PackageStatus
}

// GenericObjectDeployment is an ObjectDeployment or a ClusterObjectDeployment.
//
// +kubebuilder:object:generate=false
type GenericObjectDeployment interface {
	Conditioned
	ObjectDeploymentSpec() *ObjectDeploymentSpec
	ObjectDeploymentStatus() *ObjectDeploymentStatus
}

// GenericObjectSet is an ObjectSet or a ClusterObjectSet.
//
// +kubebuilder:object:generate=false
type GenericObjectSet interface {
	Conditioned
	ObjectSetSpec() *ObjectSetSpec
	ObjectSetStatus() *ObjectSetStatus
}

// GenericObjectSetPhase is an ObjectSetPhase or a ClusterObjectSetPhase.
//
// +kubebuilder:object:generate=false
type GenericObjectSetPhase interface {
	Conditioned
	ObjectSetPhaseSpec() *ObjectSetPhaseSpec
	ObjectSetPhaseStatus() *ObjectSetPhaseStatus
}

// GenericObjectSlice is an ObjectSlice or a ClusterObjectSlice.
//
// +kubebuilder:object:generate=false
type GenericObjectSlice interface {
	Object
	// SliceObjects returns the objects for reading and writing.
	SliceObjects() *[]ObjectSetObject
}

// GenericObjectTemplate is an ObjectTemplate or a ClusterObjectTemplate.
//
// +kubebuilder:object:generate=false
type GenericObjectTemplate interface {
	Conditioned
	ObjectTemplateSpec() *ObjectTemplateSpec
	ObjectTemplateStatus() *ObjectTemplateStatus
}

// GenericPackageRepository is a PackageRepository or a ClusterPackageRepository.
//
// +kubebuilder:object:generate=false
type GenericPackageRepository interface {
	Conditioned
	RepositorySpec() *PackageRepositorySpec
	RepositoryStatus() *PackageRepositoryStatus
}

// GenericAvailablePackage is an AvailablePackage or a ClusterAvailablePackage.
//
// +kubebuilder:object:generate=false
type GenericAvailablePackage interface {
	Object
	AvailableSpec() *AvailablePackageSpec
}

// List is a list of any kind of this package.
//
// +kubebuilder:object:generate=false
type List interface {
	metav1.ListInterface
	runtime.Object
}

// GenericPackageList is a PackageList or a ClusterPackageList.
//
// +kubebuilder:object:generate=false
type GenericPackageList interface {
	List
	GenericPackages() []GenericPackage
}

// GenericObjectDeploymentList is an ObjectDeploymentList or a
// ClusterObjectDeploymentList.
//
// +kubebuilder:object:generate=false
type GenericObjectDeploymentList interface {
	List
	GenericObjectDeployments() []GenericObjectDeployment
}

// GenericObjectSetList is an ObjectSetList or a ClusterObjectSetList.
//
// +kubebuilder:object:generate=false
type GenericObjectSetList interface {
	List
	GenericObjectSets() []GenericObjectSet
}

// GenericObjectSetPhaseList is an ObjectSetPhaseList or a
// ClusterObjectSetPhaseList.
//
// +kubebuilder:object:generate=false
type GenericObjectSetPhaseList interface {
	List
	GenericObjectSetPhases() []GenericObjectSetPhase
}

// GenericObjectSliceList is an ObjectSliceList or a ClusterObjectSliceList.
//
// +kubebuilder:object:generate=false
type GenericObjectSliceList interface {
	List
	GenericObjectSlices() []GenericObjectSlice
}

// GenericObjectTemplateList is an ObjectTemplateList or a
// ClusterObjectTemplateList.
//
// +kubebuilder:object:generate=false
type GenericObjectTemplateList interface {
	List
	GenericObjectTemplates() []GenericObjectTemplate
}

// GenericPackageRepositoryList is a PackageRepositoryList or a
// ClusterPackageRepositoryList.
//
// +kubebuilder:object:generate=false
type GenericPackageRepositoryList interface {
	List
	GenericRepositories() []GenericPackageRepository
}

// GenericAvailablePackageList is an AvailablePackageList or a
// ClusterAvailablePackageList.
//
// +kubebuilder:object:generate=false
type GenericAvailablePackageList interface {
	List
	GenericAvailablePackages() []GenericAvailablePackage
}
