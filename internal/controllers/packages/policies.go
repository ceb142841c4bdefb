package packages

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/inputs/imageconfigs"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
	"lockstep.run/lockstep/internal/loader/registry"
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

// policyKey identifies what the policies say about the image of the Package, and about those that it may name: a change loads the
// package again, and so verifies its image.
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
	if workloads := v.policies.WorkloadKey(); workloads != "" {
		key += ";workloads " + workloads
	}
	return key
}

// decision is what the policies say about the image to pull.
func (in *input) decision() imagepolicy.Decision {
	return in.policies.Decide(in.image, imagepolicy.Package)
}

// overrideOf changes the references of images that a package names, by the policies or else by the settings of the manager.
func (p *Pipeline) overrideOf(in input) func(string) string {
	return func(image string) string {
		if decision := in.policies.Decide(image, imagepolicy.Workload); decision.Rewritten {
			return decision.Pull
		}
		return p.Prefixes.Apply(image)
	}
}

// verify resolves the reference, and verifies the image with that digest. It returns the reference by digest. Its error is an
// *imagepolicy.Refusal where the image must not be used.
func (p *Pipeline) verify(ctx context.Context, in input, decision imagepolicy.Decision) (ref string, outcome *imagepolicy.Outcome, err error) {
	if decision.Refusal != nil {
		return "", nil, decision.Refusal.About(in.image)
	}
	var verified *imagepolicy.Verified
	err = p.access(ctx, in, decision, registry.Access{}, func(puller *registry.Puller) error {
		digest, err := puller.Resolve(ctx, decision.Pull)
		if err != nil {
			return err
		}
		ref = sources.ByDigest(decision.Pull, digest)
		verified, err = puller.Verify(ctx, ref, digest, decision.Verification, decision.VerificationKey())
		return err
	})
	outcome, err = decision.Outcome(in.origin.image, verified, err)
	return ref, outcome, err
}

// reportVerified sets the condition Verified by the last load that has ended.
func reportVerified(status *corev1alpha1.PackageStatus, v view) {
	a := v.attempt
	if a == nil || !a.Done {
		return
	}
	outcome := &imagepolicy.Outcome{Refusal: imagepolicy.RefusalOf(a.Err)}
	switch {
	case a.Err == nil && a.Out.content != nil:
		outcome = a.Out.content.verification
	case outcome.Refusal == nil:
		return
	}
	imageconfigs.Report(&status.Conditions, v.pkg.GetGeneration(), outcome)
}

// refusedBefore reports whether the image was refused since it was unpacked. It is verified again, though the policies say again what
// they said then: the condition Verified is that of the refusal.
func refusedBefore(pkg corev1alpha1.GenericPackage) bool {
	c := meta.FindStatusCondition(pkg.PackageStatus().Conditions, corev1alpha1.ConditionUnpacked)
	return c != nil && c.Status == metav1.ConditionFalse && c.Reason == corev1alpha1.ReasonImageNotVerified
}
