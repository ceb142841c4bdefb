package revisions

import (
	"encoding/json"
	"fmt"
	"maps"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/drift"
	"lockstep.run/lockstep/internal/objects"
)

// SpecDigest is a digest of canonical JSON, so that it does not depend on Go's types or
// on how the API server orders keys.
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

// WellKnown returns the well-known labels that a new revision of a deployment gets:
// those of the deployment, which follow each release, over those of the template,
// which stay.
func WellKnown(dep corev1alpha1.GenericObjectDeployment) map[string]string {
	labels := maps.Clone(dep.ObjectDeploymentSpec().Template.Metadata.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, objects.WellKnown(dep.GetLabels()))
	return objects.WellKnown(labels)
}

// TemplateHash returns the hash that names the revision of a template with that
// digest: with other well-known labels it is another one.
func TemplateHash(digest objects.Digest, wellKnown map[string]string) string {
	return drift.Hash([]any{digest[:], wellKnown})
}

// Describes reports whether the status of a deployment is about the template and the
// well-known labels that it has. Its generation alone does not say so: labels are no
// part of it. A status without a hash is not held against its generation.
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
