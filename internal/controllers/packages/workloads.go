package packages

import (
	"context"
	"fmt"
	"strings"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
	"lockstep.run/lockstep/internal/loader/registry"
)

// outcomes are the results of verifying images that objects name, by their references as they are written.
type outcomes map[string]*imagepolicy.Outcome

// loadVerified renders the package, and verifies the images that its objects name. No rendered content and no place among
// other loads is held while a registry is asked: the package is rendered again once they are verified.
func (p *Pipeline) loadVerified(ctx context.Context, in input) (*content, error) {
	verified := outcomes{}
	for range limits.WorkloadRounds {
		loaded, left, err := p.pullAndRender(ctx, in, verified)
		if err != nil || len(left) == 0 {
			return loaded, err
		}
		if err := p.verifyWorkloads(ctx, in, left, verified); err != nil {
			return nil, err
		}
	}
	return nil, &imagepolicy.Refusal{Reason: imagepolicy.ReasonNoSignature, Message: fmt.Sprintf(
		"the images that its objects name, and that need a signature, are others each time it is rendered: %d times", limits.WorkloadRounds)}
}

// policed reports whether policies verify an image that an object names, or refuse it.
func (in *input) policed(image string) bool {
	decision := in.policies.Decide(image, imagepolicy.Workload)
	return decision.Verification != nil || decision.Refusal != nil
}

// pinned reports whether a reference has a digest.
func pinned(image string) bool { return strings.Contains(image, "@") }

// unpinned are warnings of images that cannot be verified, as they have no digest.
func (in *input) unpinned(images []loader.WorkloadImage) (warnings []string) {
	for _, w := range images {
		if w.Image != "" && !pinned(w.Image) {
			decision := in.policies.Decide(w.Image, imagepolicy.Workload)
			warnings = append(warnings, fmt.Sprintf("the image %s (%s) has no digest, so that the ImageConfig %s does not verify it; add one, as with kubectl package update", w.Image, w.By, decision.Policy))
		}
	}
	return warnings
}

// left returns the images whose outcome is not known.
func (o outcomes) left(images []loader.WorkloadImage) (left []loader.WorkloadImage) {
	for _, w := range images {
		if _, known := o[w.Image]; !known {
			left = append(left, w)
		}
	}
	return left
}

// with returns the outcome of the package and of all images that its objects name.
func (o outcomes) with(own *imagepolicy.Outcome, images []loader.WorkloadImage) *imagepolicy.Outcome {
	signed := 0
	for _, w := range images {
		switch outcome := o[w.Image]; {
		case outcome == nil:
		case outcome.Refusal != nil && (own == nil || own.Refusal == nil):
			own = outcome
		default:
			signed++
		}
	}
	if signed == 0 || own != nil && own.Refusal != nil {
		return own
	}
	verified := imagepolicy.Verified{}
	if own != nil {
		verified = *own.Verified
	}
	verified.Workloads = signed
	return &imagepolicy.Outcome{Verified: &verified}
}

// verifyWorkloads verifies images that objects name, one after the other, until one must not be used.
func (p *Pipeline) verifyWorkloads(ctx context.Context, in input, images []loader.WorkloadImage, verified outcomes) error {
	if n := len(images); n > limits.WorkloadImages {
		return &imagepolicy.Refusal{Reason: imagepolicy.ReasonNoSignature, Message: fmt.Sprintf(
			"the objects of the package name more than %d images that need a signature, the limit; split it", limits.WorkloadImages)}
	}
	within, cancel := context.WithTimeout(ctx, limits.PullTimeout)
	defer cancel()
	for _, w := range images {
		outcome, err := p.verifyWorkload(within, in, w)
		if err != nil && within.Err() != nil && ctx.Err() == nil {
			err = imagepolicy.Unreachable(&registry.PullError{Ref: w.Image, Reason: registry.ReasonTimeout, Temporary: true, Details: fmt.Sprintf("the images of the package took longer than %v", limits.PullTimeout)})
		}
		if refusal := imagepolicy.RefusalOf(err); refusal != nil {
			return by(refusal, w)
		}
		if err != nil {
			return err
		}
		if outcome != nil && outcome.Refusal != nil {
			outcome.Refusal = by(outcome.Refusal, w)
		}
		verified[w.Image] = outcome
	}
	return nil
}

// by returns the refusal of an image that an object names.
func by(refusal *imagepolicy.Refusal, w loader.WorkloadImage) *imagepolicy.Refusal {
	own := refusal.About(w.Image)
	if own.By = w.By; w.Image == "" {
		own.Message = w.By + ": " + own.Message
	}
	return own
}

// verifyWorkload verifies one image by its digest; the outcome is nil where it has none.
func (p *Pipeline) verifyWorkload(ctx context.Context, in input, w loader.WorkloadImage) (outcome *imagepolicy.Outcome, err error) {
	decision := in.policies.Decide(w.Image, imagepolicy.Workload)
	_, digest, found := strings.Cut(w.Image, "@")
	switch {
	case w.Image == "":
		return nil, &imagepolicy.Refusal{Reason: imagepolicy.ReasonNoSignature, Message: "its image is a sensitive value, which is not verified; write it as a plain one"}
	case decision.Refusal != nil:
		return nil, decision.Refusal
	case !found:
		return nil, nil
	}
	var verified *imagepolicy.Verified
	err = p.access(ctx, in, decision, registry.Access{}, func(puller *registry.Puller) (err error) {
		verified, err = puller.Verify(ctx, decision.Pull, digest, decision.Verification, decision.VerificationKey())
		return err
	})
	return decision.Outcome(w.Image, verified, err)
}
