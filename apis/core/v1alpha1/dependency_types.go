package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PackageDependencies says how what a package depends on is installed.
type PackageDependencies struct {
	// Management says who installs missing packages. Auto, which unset means: the manager
	// installs them, and upgrades those that it installed. User: others do; the package waits.
	// +optional
	Management DependencyManagement `json:"management,omitempty"`

	// Overrides change single dependencies of the package, by their names in its
	// manifest.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	// +optional
	Overrides []DependencyOverride `json:"overrides,omitempty"`

	// DeletionPolicy says what becomes of packages that were installed for this one
	// alone, when it no longer needs them or is deleted. Orphan, which unset means,
	// keeps them. Delete deletes them after the objects of this one.
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// DependencyManagement says who installs what a package depends on. The empty value
// means Auto.
// +kubebuilder:validation:Enum=Auto;User
type DependencyManagement string

const (
	// DependencyManagementAuto has the manager install and upgrade dependencies.
	DependencyManagementAuto DependencyManagement = "Auto"

	// DependencyManagementUser only checks that they are there.
	DependencyManagementUser DependencyManagement = "User"
)

// DependencyOverride changes one dependency of a package.
type DependencyOverride struct {
	// Name of the dependency in the manifest.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Package takes the place of what the manifest says, field by field. For a
	// dependency on an API it names the package that provides it.
	// +optional
	Package *DependencyPackageOverride `json:"package,omitempty"`

	// ConfigFrom is the configuration of the package that is installed for this
	// dependency. A package that is there already keeps its own.
	// +kubebuilder:validation:MaxItems=32
	// +optional
	ConfigFrom []ValueSource `json:"configFrom,omitempty"`
}

// DependencyPackageOverride takes the place of single fields of a dependency.
type DependencyPackageOverride struct {
	// Name of the package, as repositories offer it.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Name string `json:"name,omitempty"`

	VersionSelection `json:",inline"`
}

// UpgradePolicy says who but its user may change the version of a package.
type UpgradePolicy struct {
	// AllowDependents lets the manager change packageRef.version where packages that
	// depend on this one need a higher version.
	// +optional
	AllowDependents bool `json:"allowDependents,omitempty"`

	// Dependents of a ClusterPackage whose requirements count: they limit to which
	// versions the manager changes it, hold its deletion, and, with allowDependents,
	// change its version. For a Package, these are always those of its namespace.
	// +optional
	Dependents Dependents `json:"dependents,omitempty"`
}

// Dependents are which dependents of a ClusterPackage count.
// +kubebuilder:validation:Enum=Cluster;All
type Dependents string

const (
	// DependentsCluster means that ClusterPackages count, and Packages of namespaces do
	// not. It is the default.
	DependentsCluster Dependents = "Cluster"

	// DependentsAll means that Packages of all namespaces count as well.
	DependentsAll Dependents = "All"
)

// Dependency is what a version of a package depends on. Exactly one of package and
// api is set.
type Dependency struct {
	// Name of the dependency, unique in the package.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Optional says that the package works without it.
	// +optional
	Optional bool `json:"optional,omitempty"`

	// Package is a dependency on another package.
	// +optional
	Package *DependencyPackage `json:"package,omitempty"`

	// API is a dependency on an API that the cluster serves.
	// +optional
	API *DependencyAPI `json:"api,omitempty"`
}

// DependencyPackage is a dependency on another package.
type DependencyPackage struct {
	// Name of the package, as repositories offer it.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	VersionSelection `json:",inline"`
}

// DependencyAPI is a dependency on an API that the cluster serves.
type DependencyAPI struct {
	// APIVersion such as cert-manager.io/v1.
	// +kubebuilder:validation:MaxLength=317
	APIVersion string `json:"apiVersion"`

	// Kind such as Certificate.
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`

	// FieldPaths that its schema has to have, such as spec.privateKey.
	// +listType=atomic
	// +optional
	FieldPaths []string `json:"fieldPaths,omitempty"`
}

// DependencyStatus is the observed state of one dependency.
type DependencyStatus struct {
	// Dependency is the requirement, after the overrides.
	Dependency `json:",inline"`

	// Version that is installed, or is being installed, for it.
	// +optional
	Version string `json:"version,omitempty"`

	// PackageRef is the package that is installed for it.
	// +optional
	PackageRef *DependencyReference `json:"packageRef,omitempty"`

	// Conditions of the dependency: Satisfied.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// DependencyReference names an installed package.
type DependencyReference struct {
	// Kind is Package or ClusterPackage.
	// +kubebuilder:validation:Enum=Package;ClusterPackage
	Kind string `json:"kind"`

	// Namespace of a Package.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name of the object.
	Name string `json:"name"`
}

// UniqueScope is a scope in which there may be one installation of a package.
// +kubebuilder:validation:Enum=Cluster;Namespace
type UniqueScope string

const (
	// UniqueScopeCluster allows one ClusterPackage in the cluster. Packages, which decide
	// about their namespace alone, may be installed once in each.
	UniqueScopeCluster UniqueScope = "Cluster"

	// UniqueScopeNamespace allows one installation in each namespace.
	UniqueScopeNamespace UniqueScope = "Namespace"
)
