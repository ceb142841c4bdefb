package objects

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// OwnerKey names an owner, which is the unit that controllers reconcile: an ObjectDeployment with
// all of its ObjectSets, an ObjectSet without a deployment, or an ObjectTemplate.
type OwnerKey struct {
	Kind, Namespace, Name string
}

// String returns "Kind namespace/name".
func (k OwnerKey) String() string {
	return Key{Kind: k.Kind, Namespace: k.Namespace, Name: k.Name}.String()
}

// Owner identifies an owner by its UID as well, to distinguish it from a later one of the same
// name. It controls objects, and holds the claims to them.
type Owner struct {
	OwnerKey
	UID types.UID
	// Cluster is the UID of the namespace kube-system in the owner's cluster, if its objects are in
	// another cluster; otherwise it is empty.
	Cluster types.UID
	// Names are the names on the owner's objects.
	Names *Names
}

// Remote reports whether the owner's objects are in another cluster.
func (o Owner) Remote() bool { return o.Cluster != "" }

// Put makes the owner the controller of a manifest. OwnersAnnotation is one value, so Put keeps the
// entries of others in it, as owners that control nothing. It drops entries of the same owner from
// before a restore.
func (o Owner) Put(metadata map[string]any, others ...Reference) {
	if !o.Remote() {
		// blockOwnerDeletion is never set, because the engine itself tears down the objects.
		metadata["ownerReferences"] = []any{map[string]any{
			"apiVersion": o.Names.GroupVersion.String(), "kind": o.Kind, "name": o.Name, "uid": string(o.UID), "controller": true,
		}}
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

// Is reports whether ref points at the owner.
func (o Owner) Is(ref *Reference) bool {
	return ref != nil && ref.UID == o.UID && ref.Remote == o.Remote()
}

// SameName reports whether ref has the owner's group, kind and name. With another UID, it is left
// over from before a restore from a backup.
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

// MayAdopt reports whether the annotation of an object names the owner, which can then adopt the
// object if it has no controller. For the ObjectDeployment shop/web the annotation has the name of
// its Package. Names are the names in the object's own cluster.
func (o Owner) MayAdopt(obs *Observed) bool {
	switch {
	case obs.AdoptableBy == "", o.Remote(), !slices.Contains(o.Names.Adopting, o.Kind), obs.Controller() != nil:
		return false
	case o.Namespace == "":
		return obs.AdoptableBy == o.Name
	}
	return obs.AdoptableBy == o.Namespace+"/"+o.Name
}
