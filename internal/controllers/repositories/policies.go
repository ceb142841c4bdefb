package repositories

import (
	"errors"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/fetch"
	"lockstep.run/lockstep/internal/inputs/imageconfigs"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
)

// gatherPolicy reads the decision of the policies about the image of a repository. A change fetches
// it again, and so verifies it.
func (s *reconciliation) gatherPolicy(v *view) {
	image := v.repository.RepositorySpec().Source.Image
	if s.Policies == nil || image == nil {
		return
	}

	set, err := s.Policies()
	switch {
	case errors.Is(err, imageconfigs.ErrNotRead):
		v.waiting = true
	case err != nil:
		v.inputError = "Waiting for ImageConfigs: " + err.Error()
	}

	v.image = set.Decide(image.Ref, imagepolicy.Repository)
	v.input.policy, v.input.keys = v.image.Key(), v.image.VerificationKey
}

// distrusted reports whether the published content of a repository must no longer be offered: a
// policy refuses its image, or requires a signature by other keys than the ones that verified the
// content, and the content cannot be verified by them.
func distrusted(v view) bool {
	failed := v.step == stepBackOff && v.attempt.In == v.input
	if !failed && v.step != stepPaused || v.waiting || v.inputError != "" {
		return false
	}
	if v.image.Refusal != nil {
		return true
	}
	required := v.image.Verification != nil && v.image.Verification.Mode != imagepolicy.Warn
	return required && fetch.VerifiedBy(publishedValidator(v)) != v.input.keys
}

// publishedValidator returns the validator of the published content, also if the last fetch of an
// earlier process failed.
func publishedValidator(v view) string {
	artifact := v.repository.RepositoryStatus().Artifact
	switch {
	case v.last != nil:
		return v.last.validator
	case artifact != nil:
		return artifact.Validator
	}
	return ""
}

// PoliciesChanged reconciles all repositories.
func (r *Reconciler) PoliciesChanged() {
	r.memory.Lock()
	defer r.memory.Unlock()
	for namespace := range r.memory.catalogues {
		r.enqueue(namespace)
	}
}

// reportVerified sets the condition Verified from the last fetch that has ended. An earlier
// process's condition stays if this one found that the image is known to be verified.
func reportVerified(status *corev1alpha1.PackageRepositoryStatus, v view) {
	conds, generation := &status.Conditions, v.repository.GetGeneration()
	switch {
	case v.withheld && v.step == stepPaused:
		conditions.Remove(conds, corev1alpha1.ConditionVerified) // it is about content that is no longer offered
	case v.step == stepBackOff:
		if refusal := imagepolicy.RefusalOf(v.attempt.Err); refusal != nil {
			imageconfigs.Report(conds, generation, &imagepolicy.Outcome{Refusal: refusal})
		}
	case v.verification != nil && v.writeErr == nil && (v.step == stepPublish || v.step == stepRest):
		imageconfigs.Report(conds, generation, v.verification.outcome)
		if v.repository.RepositorySpec().Source.Image != nil && status.Artifact != nil {
			status.Artifact.Validator = v.verification.validator
		}
	}
}
