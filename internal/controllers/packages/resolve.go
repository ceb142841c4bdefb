package packages

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/google/go-containerregistry/pkg/name"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/background"
	"lockstep.run/lockstep/internal/limits"
)

// resolve computes the fingerprint, and looks up whether a tag has moved.
func (s *reconciliation) resolve(context.Context) error {
	spec, resolved, image := s.pkg.PackageSpec(), s.pkg.PackageStatus().Resolved, s.choice.Origin.Image
	var err error
	if s.fingerprint, err = fingerprintOf(s.pkg, s.choice.Origin, s.environment, s.sourceVersions, s.Overrides+s.policyKey(image)); err != nil {
		return err
	}
	if spec.Interval == nil || spec.Paused || s.choice.Refused() || spec.ImagePullPolicy == corev1alpha1.ImagePullPolicyNever ||
		resolved == nil || resolved.Image != image || !tagged(image) {
		s.memory.Lock()
		defer s.memory.Unlock()
		s.state.tag = nil
		return nil
	}
	known := s.lookUpTag()
	if !known.resolving {
		s.Requeue(known.due.Sub(s.now))
	}
	if known.err != nil {
		s.lookupError = known.err.Error()
	}
	if known.digest != resolved.Digest {
		s.newDigest = known.digest
	}
	return nil
}

// lookUpTag returns the tag as it is known, and starts a resolution where one is due,
// whose end enqueues the Package.
func (s *reconciliation) lookUpTag() tag {
	s.memory.Lock()
	defer s.memory.Unlock()
	spec, retry, unpacked := s.pkg.PackageSpec(), background.RetryValue(s.pkg), digestOf(s.pkg.PackageStatus())
	interval := s.Pace.Of(max(spec.Interval.Duration, limits.TagIntervalMin))
	known, image := s.state.tag, s.choice.Origin.Image
	if known == nil || known.image != image || known.interval != interval {
		known = &tag{image: image, interval: interval, due: s.now.Add(s.spread(interval)), retryValue: retry}
		s.state.tag = known
	}
	switch unpacked {
	case known.digest:
		known.unpacked = unpacked
	case known.unpacked:
	default:
		known.digest = ""
	}
	if known.resolving {
		return *known
	}
	if retry != known.retryValue {
		known.retryValue, known.due = retry, s.now
	}
	if !s.now.Before(known.due) {
		known.resolving, known.unpacked = true, unpacked
		s.Reconciler.queueResolution(s.state, s.newInput(image), known)
	}
	return *known
}

// queueResolution requests the registry when its queue has capacity, unless the tag was dropped meanwhile.
func (r *Reconciler) queueResolution(st *state, in input, known *tag) {
	current := func() bool {
		r.memory.Lock()
		defer r.memory.Unlock()
		return st.tag == known
	}
	background.Run(r.life, &r.hosts, background.Job{
		Owner: in.pkg, Host: hostOf(in.decision().Pull), Doing: "asking what " + in.image + " stands for", Await: func(context.Context) bool { return current() },
	}, func(ctx context.Context) (string, error) { return r.resolveTag(ctx, in) }, func(digest string, err error) {
		r.memory.Lock()
		known.resolving, known.due = false, r.Now().Add(r.spread(known.interval))
		if known.err = err; err == nil {
			known.digest = digest
		}
		r.memory.Unlock()
		if current() {
			r.enqueue(keyOf(in.pkg))
		}
	})
}

// spread returns a time between half of d and d, so that packages are not resolved together after a restart.
func spread(d time.Duration) time.Duration { return d/2 + rand.N(d/2) } //nolint:gosec // no secret depends on it

func tagged(image string) bool {
	ref, err := name.ParseReference(image)
	if err != nil {
		return false
	}
	_, isTag := ref.(name.Tag)
	return isTag
}
