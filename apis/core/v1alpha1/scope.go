package v1alpha1

// Scope distinguishes the namespaced and the cluster-scoped form of a kind.
type Scope string

const (
	// ScopeNamespaced is the scope of the kinds that live in a namespace.
	ScopeNamespaced Scope = "Namespaced"

	// ScopeCluster is the scope of the kinds whose name starts with Cluster.
	ScopeCluster Scope = "Cluster"
)

// Scopes returns both scopes.
func Scopes() []Scope { return []Scope{ScopeNamespaced, ScopeCluster} }

// ScopeOf returns the scope of an object of this package by its namespace.
func ScopeOf(namespace string) Scope {
	if namespace == "" {
		return ScopeCluster
	}
	return ScopeNamespaced
}

// Kind returns the name of the twin of a namespaced kind in this scope, such as
// ClusterObjectSet for ObjectSet.
func (s Scope) Kind(namespacedKind string) string {
	if s == ScopeCluster {
		return "Cluster" + namespacedKind
	}
	return namespacedKind
}

// NewPackage returns an empty Package or ClusterPackage.
func (s Scope) NewPackage() GenericPackage {
	if s == ScopeCluster {
		return &ClusterPackage{}
	}
	return &Package{}
}

// NewPackageList returns an empty PackageList or ClusterPackageList.
func (s Scope) NewPackageList() GenericPackageList {
	if s == ScopeCluster {
		return &ClusterPackageList{}
	}
	return &PackageList{}
}

// NewObjectDeployment returns an empty ObjectDeployment or
// ClusterObjectDeployment.
func (s Scope) NewObjectDeployment() GenericObjectDeployment {
	if s == ScopeCluster {
		return &ClusterObjectDeployment{}
	}
	return &ObjectDeployment{}
}

// NewObjectDeploymentList returns an empty ObjectDeploymentList or
// ClusterObjectDeploymentList.
func (s Scope) NewObjectDeploymentList() GenericObjectDeploymentList {
	if s == ScopeCluster {
		return &ClusterObjectDeploymentList{}
	}
	return &ObjectDeploymentList{}
}

// NewObjectSet returns an empty ObjectSet or ClusterObjectSet.
func (s Scope) NewObjectSet() GenericObjectSet {
	if s == ScopeCluster {
		return &ClusterObjectSet{}
	}
	return &ObjectSet{}
}

// NewObjectSetList returns an empty ObjectSetList or ClusterObjectSetList.
func (s Scope) NewObjectSetList() GenericObjectSetList {
	if s == ScopeCluster {
		return &ClusterObjectSetList{}
	}
	return &ObjectSetList{}
}

// NewObjectSetPhase returns an empty ObjectSetPhase or ClusterObjectSetPhase.
func (s Scope) NewObjectSetPhase() GenericObjectSetPhase {
	if s == ScopeCluster {
		return &ClusterObjectSetPhase{}
	}
	return &ObjectSetPhase{}
}

// NewObjectSetPhaseList returns an empty ObjectSetPhaseList or
// ClusterObjectSetPhaseList.
func (s Scope) NewObjectSetPhaseList() GenericObjectSetPhaseList {
	if s == ScopeCluster {
		return &ClusterObjectSetPhaseList{}
	}
	return &ObjectSetPhaseList{}
}

// NewObjectSlice returns an empty ObjectSlice or ClusterObjectSlice.
func (s Scope) NewObjectSlice() GenericObjectSlice {
	if s == ScopeCluster {
		return &ClusterObjectSlice{}
	}
	return &ObjectSlice{}
}

// NewObjectSliceList returns an empty ObjectSliceList or ClusterObjectSliceList.
func (s Scope) NewObjectSliceList() GenericObjectSliceList {
	if s == ScopeCluster {
		return &ClusterObjectSliceList{}
	}
	return &ObjectSliceList{}
}

// NewObjectTemplate returns an empty ObjectTemplate or ClusterObjectTemplate.
func (s Scope) NewObjectTemplate() GenericObjectTemplate {
	if s == ScopeCluster {
		return &ClusterObjectTemplate{}
	}
	return &ObjectTemplate{}
}

// NewObjectTemplateList returns an empty ObjectTemplateList or
// ClusterObjectTemplateList.
func (s Scope) NewObjectTemplateList() GenericObjectTemplateList {
	if s == ScopeCluster {
		return &ClusterObjectTemplateList{}
	}
	return &ObjectTemplateList{}
}

// NewPackageRepository returns an empty PackageRepository or
// ClusterPackageRepository.
func (s Scope) NewPackageRepository() GenericPackageRepository {
	if s == ScopeCluster {
		return &ClusterPackageRepository{}
	}
	return &PackageRepository{}
}

// NewPackageRepositoryList returns an empty PackageRepositoryList or
// ClusterPackageRepositoryList.
func (s Scope) NewPackageRepositoryList() GenericPackageRepositoryList {
	if s == ScopeCluster {
		return &ClusterPackageRepositoryList{}
	}
	return &PackageRepositoryList{}
}

// NewAvailablePackage returns an empty AvailablePackage or
// ClusterAvailablePackage.
func (s Scope) NewAvailablePackage() GenericAvailablePackage {
	if s == ScopeCluster {
		return &ClusterAvailablePackage{}
	}
	return &AvailablePackage{}
}

// NewAvailablePackageList returns an empty AvailablePackageList or
// ClusterAvailablePackageList.
func (s Scope) NewAvailablePackageList() GenericAvailablePackageList {
	if s == ScopeCluster {
		return &ClusterAvailablePackageList{}
	}
	return &AvailablePackageList{}
}
