package packages

import (
	"context"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/load"
	"lockstep.run/lockstep/internal/kube/background"
	"lockstep.run/lockstep/internal/limits"
)

// resolve computes the fingerprint, and looks up whether a tag has moved.
func (s *reconciliation) resolve(context.Context) error {
	spec, resolved, image := s.pkg.PackageSpec(), s.pkg.PackageStatus().Resolved, s.choice.Origin.Image
	var err error
	if s.fingerprint, err = load.FingerprintOf(s.pkg, s.choice.Origin, s.environment, s.sourceVersions, s.Overrides+s.policyKey(image)); err != nil {
		return err
	}

	if spec.Interval == nil || spec.Paused || s.choice.Refused() || spec.ImagePullPolicy == corev1alpha1.ImagePullPolicyNever ||
		resolved == nil || resolved.Image != image || !load.Tagged(image) {
		s.loads.DropTag(s.state.load)
		return nil
	}

	known := s.lookUpTag()
	if !known.Resolving {
		s.Requeue(known.Due.Sub(s.now))
	}
	if known.Err != nil {
		s.lookupError = known.Err.Error()
	}
	if known.Digest != resolved.Digest {
		s.newDigest = known.Digest
	}

	return nil
}

// lookUpTag returns the tag as it is known.
func (s *reconciliation) lookUpTag() load.Tag {
	image := s.choice.Origin.Image
	return s.loads.LookUp(s.state.load, load.Question{
		Image: image, Interval: s.Pace.Of(max(s.pkg.PackageSpec().Interval.Duration, limits.TagIntervalMin)),
		RetryValue: background.RetryValue(s.pkg), Unpacked: digestOf(s.pkg.PackageStatus()), Request: func() load.Request { return s.newInput(image) },
	})
}
