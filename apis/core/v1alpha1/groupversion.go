package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of all kinds in this package.
const GroupName = "package-operator.run"

var (
	// GroupVersion is the group and version of all kinds in this package.
	GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

	// SchemeBuilder collects the functions that register the kinds.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme registers all kinds, their lists and the option types of the
	// API machinery with a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

// Resource returns the group-qualified form of a resource name of this group.
func Resource(name string) schema.GroupResource {
	return GroupVersion.WithResource(name).GroupResource()
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&Package{}, &PackageList{},
		&ClusterPackage{}, &ClusterPackageList{},
		&ObjectDeployment{}, &ObjectDeploymentList{},
		&ClusterObjectDeployment{}, &ClusterObjectDeploymentList{},
		&ObjectSet{}, &ObjectSetList{},
		&ClusterObjectSet{}, &ClusterObjectSetList{},
		&ObjectSetPhase{}, &ObjectSetPhaseList{},
		&ClusterObjectSetPhase{}, &ClusterObjectSetPhaseList{},
		&ObjectSlice{}, &ObjectSliceList{},
		&ClusterObjectSlice{}, &ClusterObjectSliceList{},
		&ObjectTemplate{}, &ObjectTemplateList{},
		&ClusterObjectTemplate{}, &ClusterObjectTemplateList{},
		&PackageRepository{}, &PackageRepositoryList{},
		&ClusterPackageRepository{}, &ClusterPackageRepositoryList{},
		&AvailablePackage{}, &AvailablePackageList{},
		&ClusterAvailablePackage{}, &ClusterAvailablePackageList{},
		&HostedClusterPackage{}, &HostedClusterPackageList{},
		&ImageConfig{}, &ImageConfigList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
