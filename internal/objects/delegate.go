package objects

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// Delegate is what an ObjectSetPhase is made of that stands for a phase with a class: the
// agent of the class writes the objects in it, and reports on its status.
type Delegate struct {
	// Class names the agent.
	Class string
	// Set is the ObjectSet, which controls it, as it does with Package Operator.
	Set Owner
	// Objects is the number of objects in it.
	Objects int
	// Paused is spec.paused; nil where the field is omitted.
	Paused *bool
}

// IsPhase reports whether objects of a kind are ObjectSetPhases. Their watch shows all of
// them, whatever their labels: an earlier engine made some.
func IsPhase(gk schema.GroupKind) bool {
	return gk.Group == corev1alpha1.GroupVersion.Group &&
		(gk.Kind == corev1alpha1.ScopeNamespaced.Kind("ObjectSetPhase") || gk.Kind == corev1alpha1.ScopeCluster.Kind("ObjectSetPhase"))
}

// WatchSelector returns the labels of the objects of a kind that the watch shows, if the
// others are those with selector.
func WatchSelector(gk schema.GroupKind, selector string) string {
	if IsPhase(gk) {
		return ""
	}
	return selector
}

// Shown reports whether the watch of a kind shows an object with these labels.
func Shown(gk schema.GroupKind, labels map[string]string) bool {
	return IsPhase(gk) || labels[corev1alpha1.CacheLabel] == corev1alpha1.CacheLabelValue
}

// Class returns the class of the phase that the object stands for; it is empty for others.
func (d *Desired) Class() string {
	if d == nil || d.Delegate == nil {
		return ""
	}
	return d.Delegate.Class
}

// Owner returns the owner that is to control the object, where others are controlled by one.
func (d *Desired) Owner(others Owner) Owner {
	if d == nil || d.Delegate == nil {
		return others
	}
	return d.Delegate.Set
}
