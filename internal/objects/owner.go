package objects

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// OwnerKey names an owner: an ObjectDeployment with all of its ObjectSets, an ObjectSet
// without one, or an ObjectTemplate. It is what controllers reconcile.
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
	// Cluster is the UID of the namespace kube-system where the owner is, if its objects
	// are in another cluster; else it is empty.
	Cluster types.UID
	// Names are those on its objects.
	Names *Names
}

// Remote reports whether the owner's objects are in another cluster.
func (o Owner) Remote() bool { return o.Cluster != "" }

// Put makes the owner the controller of a manifest. Entries of others in OwnersAnnotation,
// which is one value, are kept as owners that control nothing; those of the owner from
// before a restore are not.
func (o Owner) Put(metadata map[string]any, others ...Reference) {
	if !o.Remote() {
		metadata["ownerReferences"] = []any{o.reference()}
		return
	}
	all := []Reference{{
		OwnerReference: metav1.OwnerReference{
			APIVersion: o.Names.GroupVersion.String(), Kind: o.Kind, Name: o.Name, UID: o.UID, Controller: ptr.To(true),
		},
		Remote: true, Namespace: o.Namespace, Cluster: o.Cluster,
	}}
	for _, other := range others {
		if other.Remote && other.UID != o.UID && !o.SameName(&other) {
			other.Controller = nil
			all = append(all, other)
		}
	}
	entries(metadata, "annotations")[o.Names.OwnersAnnotation] = OwnersValue(all)
}

// reference returns the controller reference on managed objects. It never sets
// blockOwnerDeletion: teardown is the engine's.
func (o Owner) reference() map[string]any {
	return map[string]any{
		"apiVersion": o.Names.GroupVersion.String(),
		"kind":       o.Kind, "name": o.Name, "uid": string(o.UID), "controller": true,
	}
}

// Is reports whether ref points at the owner.
func (o Owner) Is(ref *Reference) bool {
	return ref != nil && ref.UID == o.UID && ref.Remote == o.Remote()
}

// SameName reports whether ref has the owner's group, kind and name: with another
// UID it is what a restore from backup leaves behind.
func (o Owner) SameName(ref *Reference) bool {
	if ref == nil || ref.Kind != o.Kind || ref.Name != o.Name || ref.Remote != o.Remote() {
		return false
	}
	if o.Remote() && (ref.Namespace != o.Namespace || ref.Cluster != o.Cluster) {
		return false
	}
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && gv.Group == o.Names.GroupVersion.Group
}

// MayAdopt reports whether the annotation of an object names the owner, so that it may adopt the
// object if nothing controls it. That of the ObjectDeployment shop/web is the name of its Package.
// Names are those of the object's own cluster.
func (o Owner) MayAdopt(obs *Observed) bool {
	switch {
	case obs.AdoptableBy == "", o.Remote(), !slices.Contains(o.Names.Adopting, o.Kind), obs.Controller() != nil:
		return false
	case o.Namespace == "":
		return obs.AdoptableBy == o.Name
	}
	return obs.AdoptableBy == o.Namespace+"/"+o.Name
}
