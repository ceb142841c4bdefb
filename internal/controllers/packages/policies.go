package packages

import (
	"errors"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/inputs/imageconfigs"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
)

// gatherPolicies reads which images are trusted.
func (s *reconciliation) gatherPolicies() {
	if s.Policies == nil {
		return
	}
	set, err := s.Policies()
	switch {
	case errors.Is(err, imageconfigs.ErrNotRead):
		s.waiting = true
	case err != nil:
		s.inputError = "Waiting for ImageConfigs: " + err.Error()
	}
	s.policies = set
}

// policyKey identifies the policies' decisions about the image of the Package, and about the images
// that it can name. A changed decision loads the package again, and so verifies its image.
func (v *view) policyKey(image string) string {
	decision, key := v.policies.Decide(image, imagepolicy.Package), ""
	if said := decision.Key(); said != "" {
		key += ";image" + said
	}
	if image == "" && v.policies.WithoutImage() != nil {
		key += ";image refused"
	}
	if rewrites := v.policies.RewriteKey(); rewrites != "" {
		key += ";rewrites " + rewrites
	}
	return key
}

// reportVerified sets the condition Verified by the last load that has ended.
func reportVerified(status *corev1alpha1.PackageStatus, v view) {
	a := v.attempt
	if a == nil || !a.Done {
		return
	}
	outcome := &imagepolicy.Outcome{Refusal: imagepolicy.RefusalOf(a.Err)}
	switch {
	case a.Err == nil && a.Out.Content != nil:
		outcome = a.Out.Content.Verification
	case outcome.Refusal == nil:
		return
	}
	imageconfigs.Report(&status.Conditions, v.pkg.GetGeneration(), outcome)
}
