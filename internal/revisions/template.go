package revisions

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/util/json"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/phases/drift"
)

// SpecDigest returns a digest of the canonical JSON of a template.
func SpecDigest(spec corev1alpha1.ObjectSetTemplateSpec) (objects.Digest, error) {
	raw, err := json.Marshal(spec)
	if err != nil {
		return objects.Digest{}, fmt.Errorf("cannot encode the template: %w", err)
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return objects.Digest{}, fmt.Errorf("cannot decode the template: %w", err)
	}
	return drift.Digest(value), nil
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
