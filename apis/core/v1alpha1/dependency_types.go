package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PackageDependencies controls how dependencies are installed.
type PackageDependencies struct {
	// Management decides who installs missing packages. Auto, the default: the manager
	// installs them, and upgrades the ones that it installed. User: the package waits
	// for you.
	// +optional
	Management DependencyManagement `json:"management,omitempty"`

	// Overrides change single dependencies of the package, by their names in its
	// manifest.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	// +optional
	Overrides []DependencyOverride `json:"overrides,omitempty"`

	// DeletionPolicy decides about packages that were installed only for this one, when
	// it no longer needs them or is deleted. Orphan, the default, keeps them. Delete
	// deletes them after the objects of this one.
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// DependencyManagement decides who installs dependencies. The empty value means Auto.
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

	// Package overrides the manifest, field by field. For a dependency on an API it
	// names the package that provides it.
	// +optional
	Package *DependencyPackageOverride `json:"package,omitempty"`

	// ConfigFrom is the configuration of the package that is installed for this
	// dependency. An installed package keeps its own.
	// +kubebuilder:validation:MaxItems=32
	// +optional
	ConfigFrom []ValueSource `json:"configFrom,omitempty"`
}

// DependencyPackageOverride overrides single fields of a dependency.
type DependencyPackageOverride struct {
	// Name of the package, as repositories offer it.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Name string `json:"name,omitempty"`

	VersionSelection `json:",inline"`
}

// UpgradePolicy decides who else can change the version of a package.
type UpgradePolicy struct {
	// AllowDependents lets the manager change packageRef.version if dependents need a
	// higher version.
	// +optional
	AllowDependents bool `json:"allowDependents,omitempty"`

	// Dependents of a ClusterPackage whose requirements apply: they limit its versions, hold its
	// deletion, and, with allowDependents, change its version. For a Package, the dependents of its
	// namespace apply.
	// +optional
	Dependents Dependents `json:"dependents,omitempty"`
}

// Dependents decides which dependents of a ClusterPackage apply.
// +kubebuilder:validation:Enum=Cluster;All
type Dependents string

const (
	// DependentsCluster means that ClusterPackages apply, and Packages of namespaces do not. It is
	// the default.
	DependentsCluster Dependents = "Cluster"

	// DependentsAll means that Packages of all namespaces count as well.
	DependentsAll Dependents = "All"
)

// Dependency is a dependency of a package version. Exactly one of package and api is
// set.
type Dependency struct {
	// Name of the dependency, unique in the package.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Optional means that the package works without it.
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

	// FieldPaths that its schema must have, such as spec.privateKey.
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

// UniqueScope is a scope that can have one installation of a package.
// +kubebuilder:validation:Enum=Cluster;Namespace
type UniqueScope string

const (
	// UniqueScopeCluster allows one ClusterPackage in the cluster, and one Package in
	// each namespace.
	UniqueScopeCluster UniqueScope = "Cluster"

	// UniqueScopeNamespace allows one installation in each namespace.
	UniqueScopeNamespace UniqueScope = "Namespace"
)
