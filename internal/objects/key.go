package objects

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Key names one object of one cluster. It has no version on purpose, because the same object is
// reachable through every served version of its kind. Namespace is empty for cluster-scoped kinds,
// Group for the core group.
type Key struct {
	Group, Kind, Namespace, Name string
}

// GroupKind returns the kind of the object that k names.
func (k Key) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: k.Group, Kind: k.Kind}
}

// Admission reports whether k is an admission policy, its binding, or a webhook
// configuration.
func (k Key) Admission() bool { return k.Group == "admissionregistration.k8s.io" }

// NamespacedName returns "namespace/name", or "name" for cluster-scoped kinds.
func (k Key) NamespacedName() string {
	if k.Namespace == "" {
		return k.Name
	}
	return k.Namespace + "/" + k.Name
}

// String returns "group Kind namespace/name" without empty parts, which is the form of Package
// Operator's status messages.
func (k Key) String() string {
	return strings.TrimSpace(k.Group + " " + k.Kind + " " + k.NamespacedName())
}

// Compare orders keys by group, kind, namespace and name.
func (k Key) Compare(o Key) int {
	return cmp.Or(
		cmp.Compare(k.Group, o.Group), cmp.Compare(k.Kind, o.Kind),
		cmp.Compare(k.Namespace, o.Namespace), cmp.Compare(k.Name, o.Name),
	)
}
