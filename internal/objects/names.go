package objects

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Names are the names by which an engine knows its own objects, and that it puts on them. Engines with other names leave
// these objects alone. They are not changed.
type Names struct {
	// GroupVersion is that of the kinds of owners.
	GroupVersion schema.GroupVersion
	// Phases are the kinds of objects that stand for phases with a class. Adopting are the kinds of owners that an object may
	// name in AdoptableByAnnotation.
	Phases, Adopting []string
	// FieldManager applies and creates. FormerFieldManagers, and it, made updates that an apply takes the fields over of, and
	// Installers are those whose fields an adoption takes over, beside the common ones.
	FieldManager                    string
	FormerFieldManagers, Installers []string
	// ManagedLabel is on all objects, with ManagedValue: watches select it.
	ManagedLabel, ManagedValue string
	// InheritedLabels are those of a revision that its objects carry too. InstanceLabel
	// is the one that identifies the package; it may be empty.
	InheritedLabels []string
	InstanceLabel   string
	// RevisionAnnotation has the number of the revision that wrote an object, and OwnersAnnotation the owners of objects in
	// another cluster.
	RevisionAnnotation, OwnersAnnotation string
	// AdoptedAnnotation is on namespaces that existed before they were adopted: these are never deleted. It may be empty.
	AdoptedAnnotation string
	// These are annotations by which users decide about an object; each may be empty.
	AdoptableByAnnotation, CollisionProtectionAnnotation  string
	DeletionPolicyAnnotation, DeletionPolicyKeep          string
	OnImmutableAnnotation, OnImmutableRecreate            string
	IgnoredFieldsAnnotation, ExposeSecretValuesAnnotation string
	AbandonTargetAnnotation                               string
}

// Selector selects the objects that are managed.
func (n *Names) Selector() string { return n.ManagedLabel + "=" + n.ManagedValue }

// Unselected selects the objects that are not managed.
func (n *Names) Unselected() string { return n.ManagedLabel + "!=" + n.ManagedValue }

// Inherited returns those of a set of labels that its objects carry too.
func (n *Names) Inherited(set map[string]string) map[string]string {
	labels := map[string]string{}
	for key, value := range set {
		if slices.Contains(n.InheritedLabels, key) {
			labels[key] = value
		}
	}
	return labels
}

// Keeps reports whether annotations say that the object is released instead of deleted.
func (n *Names) Keeps(annotations map[string]string) bool {
	return n.DeletionPolicyAnnotation != "" && annotations[n.DeletionPolicyAnnotation] == n.DeletionPolicyKeep
}

// Adopted reports whether annotations say that the object existed before it was adopted.
func (n *Names) Adopted(annotations map[string]string) bool {
	return n.AdoptedAnnotation != "" && annotations[n.AdoptedAnnotation] == "true"
}

// Recreates reports whether annotations say that the object is recreated where an immutable field differs.
func (n *Names) Recreates(annotations map[string]string) bool {
	return n.OnImmutableAnnotation != "" && annotations[n.OnImmutableAnnotation] == n.OnImmutableRecreate
}

// IsPhase reports whether objects of a kind stand for phases with a class. Their watch shows all of them, whatever their
// labels: an earlier engine made some.
func (n *Names) IsPhase(gk schema.GroupKind) bool {
	return gk.Group == n.GroupVersion.Group && slices.Contains(n.Phases, gk.Kind)
}

// WatchSelector returns the labels of the objects of a kind that the watch shows, if the others are those with selector.
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

// ControllerOf returns the owner that controls a live object, as Observed.Controller does; nil if there is none.
func (n *Names) ControllerOf(live metav1.Object) *Reference {
	o := Observed{Owners: n.References(live.GetOwnerReferences(), live.GetAnnotations())}
	return o.Controller()
}
