package packages

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
	"lockstep.run/lockstep/internal/loader/registry"
)

// unfinished is the error of a load that is to be continued: the images that the objects name are verified without the place of a load and without
// the rendered content, and the package is rendered again once that is done.
type unfinished struct{ next input }

// Error implements error.
func (*unfinished) Error() string { return "images that the objects name are being verified" }

// policed reports whether policies verify an image that an object names, or refuse it.
func (in *input) policed(image string) (how loader.Policed, policed bool) {
	decision := in.policies.Decide(image, imagepolicy.Workload)
	how = loader.Policed{Enforced: decision.Refusal != nil || decision.Verification != nil && decision.Verification.Mode != imagepolicy.Warn, Pinned: pinned(image)}
	return how, decision.Verification != nil || decision.Refusal != nil
}

// registryOf returns the registry that is asked for the signature of an image; empty where none is.
func (in *input) registryOf(w loader.WorkloadImage) string {
	if decision := in.policies.Decide(w.Image, imagepolicy.Workload); w.Image != "" && w.Pinned && decision.Refusal == nil {
		return hostOf(decision.Pull)
	}
	return ""
}

// verifyNext returns the input with the images that are left to verify, of those that objects name. Its error is an *imagepolicy.Refusal
// where one must not be used, whatever its signature.
func (in *input) verifyNext(images []loader.WorkloadImage) (next input, err error) {
	next = *in
	next.workloads.known, next.workloads.left = maps.Clone(in.workloads.known), nil
	if next.workloads.known == nil {
		next.workloads.known = outcomes{}
	}
	asked := map[bool]int{}
	for _, w := range in.workloads.known.left(images) {
		decision, refusal := in.policies.Decide(w.Image, imagepolicy.Workload), (*imagepolicy.Refusal)(nil)
		switch {
		case w.Image == "":
			refusal = notVerified("its image is a sensitive value, which is not verified; write it as a plain one")
		case decision.Refusal != nil:
			refusal = decision.Refusal
		case !w.Pinned: // there is a warning
		case asked[w.Enforced] == limits.WorkloadImages:
			refusal = notVerified(fmt.Sprintf("the objects of the package name more than %d images that need a signature, the limit; split it", limits.WorkloadImages))
		case in.workloads.rounds+1 >= limits.WorkloadRounds:
			refusal = notVerified(fmt.Sprintf("the images that its objects name, and that need a signature, are others each time it is rendered: %d times", limits.WorkloadRounds))
		default:
			asked[w.Enforced]++
			next.workloads.left = append(next.workloads.left, w)
			continue
		}
		next.workloads.known[w.Image] = nil
		if refusal != nil && w.Enforced {
			return next, by(refusal, w)
		}
		if refusal != nil {
			next.workloads.known[w.Image] = &imagepolicy.Outcome{Refusal: by(refusal, w)}
		}
	}
	// Those that are warned of come last, so that they take no time of the others.
	slices.SortStableFunc(next.workloads.left, func(a, b loader.WorkloadImage) int {
		switch {
		case a.Enforced == b.Enforced:
			return 0
		case a.Enforced:
			return -1
		}
		return 1
	})
	next.workloads.rounds++
	return next, nil
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
		if _, known := o[w.Image]; !known || w.Image == "" {
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

func notVerified(message string) *imagepolicy.Refusal {
	return &imagepolicy.Refusal{Reason: imagepolicy.ReasonNoSignature, Message: message}
}

// verifyWorkloads verifies the first of the images that are left and those that are verified alike by the same registry, one after the
// other, until one must not be used. Else its error is an *unfinished without them.
func (p *Pipeline) verifyWorkloads(ctx context.Context, in input) error {
	next, first, began := in, in.workloads.left[0], time.Now()
	next.workloads.known, next.workloads.left = maps.Clone(in.workloads.known), nil
	within, cancel := context.WithTimeout(ctx, limits.WorkloadTime-in.workloads.asked)
	defer cancel()
	for _, w := range in.workloads.left {
		if w.Enforced != first.Enforced || in.registryOf(w) != in.registryOf(first) {
			next.workloads.left = append(next.workloads.left, w)
			continue
		}
		outcome, err := p.verifyWorkload(within, in, w)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if refusal := imagepolicy.RefusalOf(err); refusal != nil {
			return by(refusal, w)
		}
		if err != nil {
			return err
		}
		if outcome.Refusal != nil {
			outcome.Refusal = by(outcome.Refusal, w)
		}
		next.workloads.known[w.Image] = outcome
	}
	next.workloads.asked += time.Since(began)
	return &unfinished{next}
}

// by returns the refusal of an image that an object names.
func by(refusal *imagepolicy.Refusal, w loader.WorkloadImage) *imagepolicy.Refusal {
	own := refusal.About(w.Image)
	if own.By = w.By; w.Image == "" {
		own.Message = w.By + ": " + own.Message
	}
	return own
}

// verifyWorkload verifies one image by its digest.
func (p *Pipeline) verifyWorkload(ctx context.Context, in input, w loader.WorkloadImage) (outcome *imagepolicy.Outcome, err error) {
	decision := in.policies.Decide(w.Image, imagepolicy.Workload)
	_, digest, _ := strings.Cut(w.Image, "@")
	var verified *imagepolicy.Verified
	err = p.access(ctx, in, decision, registry.Access{}, func(puller *registry.Puller) (err error) {
		verified, err = puller.Verify(ctx, decision.Pull, digest, decision.Verification, decision.VerificationKey())
		return err
	})
	if err != nil && ctx.Err() != nil {
		err = imagepolicy.Unreachable(&registry.PullError{Ref: w.Image, Reason: registry.ReasonTimeout, Temporary: true, Details: fmt.Sprintf("the images of the package took longer than %v", limits.WorkloadTime)})
	}
	return decision.Outcome(w.Image, verified, err)
}
