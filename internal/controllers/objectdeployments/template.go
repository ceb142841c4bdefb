package objectdeployments

import (
	"fmt"
	"maps"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/internal/revisions"
)

// unfilled reports whether the template has no phases yet. A package that has only dependencies
// never gets any.
func (s *reconciliation) unfilled() bool {
	return len(s.deployment.ObjectDeploymentSpec().Template.Spec.Phases) == 0 && s.deployment.GetAnnotations()[corev1alpha1.UnpackedHashAnnotation] == ""
}

// templateDigest returns the digest of the deployment's template. A generation has one template, so
// the digest is computed once for each.
func (s *reconciliation) templateDigest() (objects.Digest, error) {
	last, generation := s.of(s.deployment.GetUID()), s.deployment.GetGeneration()
	if last.generation == generation && !last.digest.IsZero() {
		return last.digest, nil
	}
	digest, err := revisions.SpecDigest(s.deployment.ObjectDeploymentSpec().Template.Spec)
	if err == nil {
		last.digest, last.generation = digest, generation
	}
	return digest, err
}

func (s *reconciliation) setDigest(set corev1alpha1.GenericObjectSet) (objects.Digest, error) {
	if !objectsets.Owns(set) {
		return objects.Digest{}, nil // history is cached without its objects
	}

	last := s.of(set.GetUID())
	if !last.digest.IsZero() {
		return last.digest, nil
	}

	content, template := &set.ObjectSetSpec().ObjectSetTemplateSpec, &s.deployment.ObjectDeploymentSpec().Template.Spec
	var digest objects.Digest
	var err error
	if reflect.DeepEqual(content, template) { // like the current revision's at rest
		digest, err = s.templateDigest()
	} else {
		digest, err = revisions.SpecDigest(*content)
	}
	if err == nil {
		last.digest = digest
	}

	return digest, err
}

func (s *reconciliation) newSet(number int64) (corev1alpha1.GenericObjectSet, error) {
	digest, err := s.templateDigest()
	if err != nil {
		return nil, err
	}

	wellKnown := revisions.WellKnown(s.deployment)
	hash := revisions.TemplateHash(digest, wellKnown)
	set := s.scope.NewObjectSet()
	set.SetName(s.key.Name + "-" + hash)
	set.SetNamespace(s.key.Namespace)
	labels := maps.Clone(s.deployment.ObjectDeploymentSpec().Template.Metadata.Labels)
	if labels == nil {
		labels = map[string]string{}
	}

	maps.Copy(labels, wellKnown)
	labels[corev1alpha1.ObjectDeploymentLabel] = s.key.Name
	set.SetLabels(labels)
	annotations := maps.Clone(s.deployment.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}

	delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
	for _, key := range []string{ // of the deployment, whose template may come back; a claim is each set's own
		corev1alpha1.UnpackedHashAnnotation, corev1alpha1.TemplateDigestAnnotation, corev1alpha1.PackageGenerationAnnotation, corev1alpha1.ClaimedAnnotation,
		corev1alpha1.RetryAnnotation, corev1alpha1.OrphanedAnnotation, corev1alpha1.PruneAnnotation,
		corev1alpha1.AwaitingActivationAnnotation, corev1alpha1.RolledBackFromAnnotation, corev1alpha1.RejectedAnnotation,
	} {
		delete(annotations, key)
	}

	annotations[corev1alpha1.HashAnnotation] = hash
	annotations[corev1alpha1.ObjectDeploymentUIDAnnotation] = string(s.deployment.GetUID())
	spec := set.ObjectSetSpec()
	s.deployment.ObjectDeploymentSpec().Template.Spec.DeepCopyInto(&spec.ObjectSetTemplateSpec)
	spec.LifecycleState, spec.Revision = corev1alpha1.ObjectSetLifecycleStateActive, number
	if s.deployment.ObjectDeploymentSpec().RevisionActivationPolicy == corev1alpha1.RevisionActivationManual {
		annotations[corev1alpha1.AwaitingActivationAnnotation] = "true"
		spec.LifecycleState = corev1alpha1.ObjectSetLifecycleStatePaused
	}

	set.SetAnnotations(annotations)
	set.SetFinalizers([]string{corev1alpha1.CachedFinalizer})
	set.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: corev1alpha1.GroupVersion.String(), Kind: s.key.Kind, Name: s.key.Name,
		UID: s.deployment.GetUID(), Controller: ptr.To(true),
	}})

	for _, older := range s.sets {
		spec.Previous = append(spec.Previous, corev1alpha1.PreviousRevisionReference{Name: older.GetName()})
	}
	return set, nil
}

// setName returns the name to try after so many collisions.
func setName(base string, number int64, taken int32) string {
	switch taken {
	case 0:
		return base
	case 1:
		return fmt.Sprintf("%s-%d", base, number)
	}
	return fmt.Sprintf("%s-%d-%d", base, number, taken)
}
