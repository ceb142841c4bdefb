package v1alpha1

import "cmp"

// TargetReference names another cluster to roll objects out to.
type TargetReference struct {
	// KubeconfigSecretRef names the kubeconfig of the cluster, whose user creates,
	// changes and deletes the objects. A changed Secret is used as long as it leads to
	// the same cluster. A kubeconfig that runs programs, names files, impersonates, or
	// does not verify the server, is refused.
	KubeconfigSecretRef KubeconfigSecretReference `json:"kubeconfigSecretRef"`

	// Namespace in the other cluster. All objects of a Package are in it; the default
	// is the name of the Package's namespace. Objects of a ClusterPackage are in it if
	// they name none. It has to exist.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// NamespaceOf returns the namespace of the objects of a package in a namespace. A namespace
// of the target wins. A ClusterPackage, whose namespace is empty, has none.
func (r *TargetReference) NamespaceOf(namespace string) string {
	if r == nil || namespace == "" {
		return namespace
	}
	return cmp.Or(r.Namespace, namespace)
}

// KubeconfigSecretReference names a key of a Secret: in the namespace of the object,
// or in the manager's namespace for cluster-scoped kinds.
type KubeconfigSecretReference struct {
	// Name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`

	// Key in the Secret's data. Unset means value, as Cluster API names it.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	// +optional
	Key string `json:"key,omitempty"`
}

// DefaultKubeconfigKey is the default key of a kubeconfig in a Secret.
const DefaultKubeconfigKey = "value"

// KeyOrDefault returns the key in the Secret's data.
func (r *KubeconfigSecretReference) KeyOrDefault() string {
	return cmp.Or(r.Key, DefaultKubeconfigKey)
}
