package packages

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/inputs/imageconfigs"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
	"lockstep.run/lockstep/internal/loader/registry"
)

// verification is what came of verifying an image: who signed it or, where that does not prevent its use, why it is not trusted.
type verification struct {
	verified *imagepolicy.Verified
	refusal  *imagepolicy.Refusal
}

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
func (p *Pipeline) verify(ctx context.Context, in input, decision imagepolicy.Decision) (ref string, outcome *verification, err error) {
	if decision.Refusal != nil {
		return "", nil, decision.Refusal.About(in.image)
	}
	var verified *imagepolicy.Verified
	err = p.access(ctx, in, registry.Access{}, func(puller *registry.Puller) error {
		digest, err := puller.Resolve(ctx, decision.Pull)
		if err != nil {
			return err
		}
		ref = sources.ByDigest(decision.Pull, digest)
		verified, err = puller.Verify(ctx, ref, digest, decision.Verification, decision.VerificationKey())
		return err
	})
	refusal := imagepolicy.RefusalOf(err)
	switch {
	case err == nil:
		own := *verified
		own.Policy = decision.Policy
		return ref, &verification{verified: &own}, nil
	case refusal == nil:
		return "", nil, err
	}
	refusal = refusal.About(in.origin.image)
	refusal.Message += " (ImageConfig " + decision.Policy + ")"
	if decision.Verification.Mode == imagepolicy.Warn {
		return ref, &verification{refusal: refusal}, nil
	}
	return "", nil, refusal
}

// reportVerified sets the condition Verified by the last load that has ended.
func reportVerified(status *corev1alpha1.PackageStatus, v view) {
	a := v.attempt
	if a == nil || !a.Done {
		return
	}
	outcome := &verification{refusal: imagepolicy.RefusalOf(a.Err)}
	switch {
	case a.Err == nil && a.Out.content != nil:
		outcome = a.Out.content.verification
	case outcome.refusal == nil:
		return
	}
	generation, conds := v.pkg.GetGeneration(), &status.Conditions
	switch {
	case outcome == nil:
		meta.RemoveStatusCondition(conds, corev1alpha1.ConditionVerified)
	case outcome.verified != nil:
		conditions.Set(conds, generation, corev1alpha1.ConditionVerified, true, corev1alpha1.ReasonVerified, outcome.verified.String())
	case outcome.refusal.Unknown():
		conditions.SetUnknown(conds, generation, corev1alpha1.ConditionVerified, string(outcome.refusal.Reason), outcome.refusal.Error()+".")
	default:
		conditions.Set(conds, generation, corev1alpha1.ConditionVerified, false, string(outcome.refusal.Reason), outcome.refusal.Error()+".")
	}
}

// refusedBefore reports whether the image was refused since it was unpacked. It is verified again, though the policies say again what
// they said then: the condition Verified is that of the refusal.
func refusedBefore(pkg corev1alpha1.GenericPackage) bool {
	c := meta.FindStatusCondition(pkg.PackageStatus().Conditions, corev1alpha1.ConditionUnpacked)
	return c != nil && c.Status == metav1.ConditionFalse && c.Reason == corev1alpha1.ReasonImageNotVerified
}

// notVerified returns the state of a Package whose image is refused; ok is false for other errors.
func notVerified(err error) (state conditions.State, ok bool) {
	refusal := imagepolicy.RefusalOf(err)
	if refusal == nil {
		return state, false
	}
	var pull *registry.PullError
	unreachable := errors.As(refusal.Err, &pull) && pull.Temporary
	return conditions.State{Stalled: !unreachable, Reason: corev1alpha1.ReasonImageNotVerified, Message: refusal.Error() + "."}, true
}
