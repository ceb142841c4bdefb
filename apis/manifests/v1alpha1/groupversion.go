package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the group of all kinds in this package.
const GroupName = "manifests.package-operator.run"

// Names of the kinds in this package.
const (
	// KindPackageManifest is the kind of manifest.yaml.
	KindPackageManifest = "PackageManifest"

	// KindPackageManifestLock is the kind of manifest.lock.yaml.
	KindPackageManifestLock = "PackageManifestLock"

	// KindRepository is the kind of the first document of a repository file.
	KindRepository = "Repository"

	// KindRepositoryEntry is the kind of every further document of a repository
	// file.
	KindRepositoryEntry = "RepositoryEntry"
)

var (
	// GroupVersion is the group and version of all kinds in this package.
	GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

	// SchemeBuilder collects the functions that register the kinds.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme registers all kinds with a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&PackageManifest{},
		&PackageManifestLock{},
		&Repository{},
		&RepositoryEntry{},
	)
	return nil
}
