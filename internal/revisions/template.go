package revisions

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/phases/drift"
)

// SpecDigest returns a digest of the canonical JSON of a template.
func SpecDigest(spec corev1alpha1.ObjectSetTemplateSpec) (objects.Digest, error) {
	value, err := Decoded(spec)
	if err != nil {
		return objects.Digest{}, err
	}
	return drift.Digest(value), nil
}

// Decoded returns a template as decoded JSON. Its objects are JSON, and are only decoded: encoding
// them takes as long again.
func Decoded(spec corev1alpha1.ObjectSetTemplateSpec) (map[string]any, error) {
	phases := slices.Clone(spec.Phases)
	for i := range phases {
		phases[i].Objects = slices.Clone(phases[i].Objects)
		for j := range phases[i].Objects {
			if object := &phases[i].Objects[j].Object; object.Raw != nil {
				*object = runtime.RawExtension{}
			}
		}
	}
	outer := spec
	outer.Phases = phases
	raw, err := json.Marshal(outer)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the template: %w", err)
	}
	var value map[string]any
	if err := json.Unmarshal(raw, &value); err != nil {
		return nil, fmt.Errorf("cannot decode the template: %w", err)
	}
	decoded, _ := value["phases"].([]any)
	for i := range decoded {
		entries, _ := decoded[i].(map[string]any)["objects"].([]any)
		for j := range entries {
			text := spec.Phases[i].Objects[j].Object.Raw
			if text == nil {
				continue
			}
			var object any
			if err := json.Unmarshal(text, &object); err != nil {
				return nil, fmt.Errorf("cannot decode object %d of phase %q: %w", j, spec.Phases[i].Name, err)
			}
			entries[j].(map[string]any)["object"] = object
		}
	}
	return value, nil
}

// WellKnown returns the well-known labels of a deployment's new revision. The deployment's own
// labels, which follow each release, take precedence over the template's, which stay the same.
func WellKnown(dep corev1alpha1.GenericObjectDeployment) map[string]string {
	labels := maps.Clone(dep.ObjectDeploymentSpec().Template.Metadata.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, apinames.Default.Inherited(dep.GetLabels()))
	return apinames.Default.Inherited(labels)
}

// TemplateHash returns the hash in the name of a revision. It covers the template's digest and the
// well-known labels.
func TemplateHash(digest objects.Digest, wellKnown map[string]string) string {
	return drift.Hash([]any{digest[:], wellKnown})
}

// Describes reports whether the status of a deployment reflects its template and well-known labels.
// Comparing generations is not enough because labels do not change the generation. If the status
// has no hash, the generation decides alone.
func Describes(dep corev1alpha1.GenericObjectDeployment) bool {
	status := dep.ObjectDeploymentStatus()
	if status.ObservedGeneration != dep.GetGeneration() {
		return false
	}
	if status.TemplateHash == "" {
		return true
	}
	digest, err := SpecDigest(dep.ObjectDeploymentSpec().Template.Spec)
	return err == nil && status.TemplateHash == TemplateHash(digest, WellKnown(dep))
}
