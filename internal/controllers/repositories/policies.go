package repositories

import (
	"errors"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/inputs/imageconfigs"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
)

// gatherPolicy reads the decision of the policies about the image of a repository. A change fetches it again, and so verifies it.
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
	v.input.policy, v.input.keys = v.image.Key(), v.image.VerificationKey()
}

// PoliciesChanged reconciles all repositories.
func (r *Reconciler) PoliciesChanged() {
	r.memory.Lock()
	defer r.memory.Unlock()
	for namespace := range r.memory.catalogues {
		r.enqueue(namespace)
	}
}

// reportVerified sets the condition Verified by the last fetch that has ended. That of an earlier process stays where this one found
// that the image is known to be verified.
func reportVerified(status *corev1alpha1.PackageRepositoryStatus, v view) {
	conds, generation := &status.Conditions, v.repository.GetGeneration()
	switch {
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
