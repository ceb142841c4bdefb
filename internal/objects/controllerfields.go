package objects

import "k8s.io/apimachinery/pkg/runtime/schema"

// ControllerField is a field that one of Kubernetes' controllers writes, according to its
// documentation.
type ControllerField struct {
	Kind  schema.GroupKind
	Field []string
	// Manager is the field manager of the controller, if the field belongs to the controller only
	// at times.
	Manager string
	// While reports whether the controller writes the field of an object with this content;
	// nil means always.
	While func(object map[string]any) bool
}

// ControllerFields lists them all. The engine writes these fields when it creates the object and
// leaves them to the controller afterwards, even if a template states them.
var ControllerFields = []ControllerField{
	{
		Kind: schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}, Field: []string{"rules"},
		Manager: "clusterrole-aggregation-controller",
		While:   func(object map[string]any) bool { return object["aggregationRule"] != nil },
	},
	// The binding of a volume names the UID of its claim, which a template cannot know.
	{Kind: schema.GroupKind{Kind: "PersistentVolume"}, Field: []string{"spec", "claimRef"}},
}

// LeftToControllers returns the fields that Kubernetes' controllers write on an object with this
// content.
func LeftToControllers(kind schema.GroupKind, object map[string]any) IgnoredFields {
	var left IgnoredFields
	for _, f := range ControllerFields {
		if f.Kind == kind && (f.While == nil || f.While(object)) {
			left = append(left, f.Field)
		}
	}
	return left
}
