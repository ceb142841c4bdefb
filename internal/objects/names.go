package objects

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Names are the names that an engine puts on its own objects and recognizes them by. Engines with
// other names leave these objects alone. Names are immutable.
type Names struct {
	// GroupVersion is the API group and version of the owners' kinds.
	GroupVersion schema.GroupVersion
	// Phases are the kinds of objects that represent phases with a class. Adopting are the kinds of
	// owners that an object can name in AdoptableByAnnotation.
	Phases, Adopting []string
	// FieldManager applies and creates. An apply takes over fields that FieldManager and
	// FormerFieldManagers set by updates. An adoption also takes over the fields of Installers and
	// of the common ones.
	FieldManager                    string
	FormerFieldManagers, Installers []string
	// ManagedLabel is on all objects, with the value ManagedValue. Watches select objects by it.
	ManagedLabel, ManagedValue string
	// InheritedLabels are the labels that a revision passes on to its objects. InstanceLabel
	// identifies the package; it can be empty.
	InheritedLabels []string
	InstanceLabel   string
	// RevisionAnnotation has the number of the revision that wrote an object. OwnersAnnotation has
	// the owners of objects in another cluster.
	RevisionAnnotation, OwnersAnnotation string
	// AdoptedAnnotation marks namespaces that existed before their adoption. They are never
	// deleted. It can be empty.
	AdoptedAnnotation string
	// Users decide about an object with these annotations; each can be empty.
	AdoptableByAnnotation, CollisionProtectionAnnotation  string
	DeletionPolicyAnnotation, DeletionPolicyKeep          string
	OnImmutableAnnotation, OnImmutableRecreate            string
	IgnoredFieldsAnnotation, ExposeSecretValuesAnnotation string
	AbandonTargetAnnotation                               string
}

// Selector returns the label selector of managed objects.
func (n *Names) Selector() string { return n.ManagedLabel + "=" + n.ManagedValue }

// Unselected returns the label selector of all other objects.
func (n *Names) Unselected() string { return n.ManagedLabel + "!=" + n.ManagedValue }

// Inherited returns the labels of a set that its objects carry as well.
func (n *Names) Inherited(set map[string]string) map[string]string {
	labels := map[string]string{}
	for key, value := range set {
		if slices.Contains(n.InheritedLabels, key) {
			labels[key] = value
		}
	}
	return labels
}

// Keeps reports whether annotations require that the object is released instead of deleted.
func (n *Names) Keeps(annotations map[string]string) bool {
	return n.DeletionPolicyAnnotation != "" && annotations[n.DeletionPolicyAnnotation] == n.DeletionPolicyKeep
}

// Adopted reports whether annotations state that the object existed before its adoption.
func (n *Names) Adopted(annotations map[string]string) bool {
	return n.AdoptedAnnotation != "" && annotations[n.AdoptedAnnotation] == "true"
}

// Recreates reports whether annotations allow recreating the object if an immutable field differs.
func (n *Names) Recreates(annotations map[string]string) bool {
	return n.OnImmutableAnnotation != "" && annotations[n.OnImmutableAnnotation] == n.OnImmutableRecreate
}

// IsPhase reports whether objects of a kind represent phases with a class. Their watch shows all of
// them regardless of labels, because an earlier engine made some.
func (n *Names) IsPhase(gk schema.GroupKind) bool {
	return gk.Group == n.GroupVersion.Group && slices.Contains(n.Phases, gk.Kind)
}

// WatchSelector returns the label selector for the watch of a kind, given the selector for all
// other kinds.
func (n *Names) WatchSelector(gk schema.GroupKind, selector string) string {
	if n.IsPhase(gk) {
		return ""
	}
	return selector
}

// Shown reports whether the watch of a kind shows an object with these labels.
func (n *Names) Shown(gk schema.GroupKind, labels map[string]string) bool {
	return n.IsPhase(gk) || labels[n.ManagedLabel] == n.ManagedValue
}

// ControllerOf returns the owner that controls a live object, as Observed.Controller does; nil if
// there is none.
func (n *Names) ControllerOf(live metav1.Object) *Reference {
	o := Observed{Owners: n.References(live.GetOwnerReferences(), live.GetAnnotations())}
	return o.Controller()
}
