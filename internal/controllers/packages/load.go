package packages

import (
	"context"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/load"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/kube/background"
)

// newAttempt returns an attempt to load the Package as it is known now.
func (s *reconciliation) newAttempt() *load.Attempt {
	return &load.Attempt{
		In: load.Input{Fingerprint: s.fingerprint, NewDigest: s.newDigest, RetryNumber: s.retryNumber}, RetryValue: background.RetryValue(s.pkg), Started: s.now,
	}
}

// startLoad starts a load if that was decided and it does not have to wait, and cancels any other.
// Its end enqueues the Package.
func (s *reconciliation) startLoad(ctx context.Context) (step, string, error) {
	switch {
	case s.step != stepLoad:
		return s.step, s.why, nil
	case s.backOff():
		return stepWait, "", nil
	}

	if s.Wait(s.state.load.Delay(s.pkg.GetGeneration(), s.now)) {
		return stepGather, "", nil
	}

	reuse := load.Compare(s.pkg, s.fingerprint)
	in := s.newInput(load.Reference(s.pkg, s.choice.Origin.Image, reuse, s.newDigest))
	if sources.FromSecrets(s.pkg.PackageSpec()) {
		key, err := s.hashKeyOf(ctx, s.pkg, s.state)
		if err != nil {
			return stepGather, err.Error(), nil
		}
		in.HashKey = key
	}

	a, last := s.newAttempt(), s.attempt
	s.attempt = a
	s.loads.Start(s.state.load, in, a, last)
	return stepLoad, "", nil
}

// newInput returns the request of a load. It has no status, so that the package of a load in
// progress stays small.
func (s *reconciliation) newInput(image string) load.Request {
	pkg := copyOf(s.pkg)
	*pkg.PackageStatus() = corev1alpha1.PackageStatus{}
	in := load.Request{Pkg: pkg, Image: image, Origin: s.choice.Origin, Namespace: s.namespaceOf(pkg), Environment: s.environment, Manager: s.Version, Policies: s.policies, Reader: s.Accounts.reader(pkg)}
	if s.target != nil {
		in.Namespaced = s.target.Namespaced
	}
	return in
}

// backOff replaces an attempt that has to wait by a failed one, and reports whether it did.
func (s *reconciliation) backOff() bool {
	record := afterInterruption(s.pkg.PackageStatus().Load, s.view)
	if record == nil {
		return false
	}
	a := s.newAttempt()
	a.Done, a.Err, a.Retry = true, &interrupted{record: record, limit: s.Pipeline.Memory.Limit()}, record.NotBefore.Time
	s.loads.Fail(s.state.load, a)
	s.attempt = a
	return true
}

func (s *reconciliation) dropAttempt() { s.loads.Drop(s.state.load) }
