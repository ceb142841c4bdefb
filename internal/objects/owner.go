package objects

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// OwnerKey names an owner: an ObjectDeployment with all of its ObjectSets, or an ObjectSet
// without one. It is what controllers reconcile.
type OwnerKey struct {
	Kind, Namespace, Name string
}

// String returns "Kind namespace/name".
func (k OwnerKey) String() string {
	return Key{Kind: k.Kind, Namespace: k.Namespace, Name: k.Name}.String()
}

// Owner is an owner, as opposed to a later one of the same name. It controls objects, and
// holds the claims to them.
type Owner struct {
	OwnerKey
	UID types.UID
}

// Reference returns the controller reference on managed objects. It never sets
// blockOwnerDeletion: teardown is the engine's.
func (o Owner) Reference() map[string]any {
	return map[string]any{
		"apiVersion": corev1alpha1.GroupVersion.String(),
		"kind":       o.Kind, "name": o.Name, "uid": string(o.UID), "controller": true,
	}
}

// Is reports whether ref points at the owner.
func (o Owner) Is(ref *metav1.OwnerReference) bool { return ref != nil && ref.UID == o.UID }

// SameName reports whether ref has the owner's group, kind and name: with another
// UID it is what a restore from backup leaves behind.
func (o Owner) SameName(ref *metav1.OwnerReference) bool {
	if ref == nil || ref.Kind != o.Kind || ref.Name != o.Name {
		return false
	}
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && gv.Group == corev1alpha1.GroupVersion.Group
}
