package repositories

import (
	"time"

	"lockstep.run/lockstep/internal/catalog/fetch"
	"lockstep.run/lockstep/internal/kube/background"
	"lockstep.run/lockstep/internal/limits"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

const repositoryInterval = 10 * time.Minute // between fetches, if the repository states none

// decide returns the next step, and the time until the next decision; zero for never.
func decide(v view) (step, time.Duration) {
	spec, a := v.repository.RepositorySpec(), v.attempt
	if a != nil && a.Done && a.Err == nil && a.In == v.input {
		return stepPublish, 0
	}

	running := a != nil && !a.Done
	switch {
	case running && (spec.Paused || v.waiting || a.In == v.input):
		return stepWait, 0
	case spec.Paused:
		return stepPaused, 0
	case v.waiting || v.inputError != "":
		return stepGather, 0
	}

	next, why := due(v)
	if why == stepRest && next.IsZero() || why == stepBackOff && next.IsZero() {
		return why, 0
	}
	if wait := next.Sub(v.now); wait > 0 {
		return why, wait
	}
	if wait := v.fetchStarted.Add(v.pace.Of(limits.RepositoryPause)).Sub(v.now); wait > 0 && !v.fetchStarted.IsZero() {
		return stepWait, wait
	}

	return stepFetch, 0
}

// due returns when the next fetch starts, zero for never, and the step until then.
func due(v view) (time.Time, step) {
	spec, a, last := v.repository.RepositorySpec(), v.attempt, v.last
	retry := background.RetryValue(v.repository)
	switch {
	case a != nil && (a.In != v.input || a.RetryValue != retry):
		return v.now, stepWait
	case a != nil && a.Done:
		return a.Retry, stepBackOff
	case last == nil || last.incomplete || last.retryValue != retry || !last.covers(v.input):
		return v.now, stepWait
	case fetch.Static(spec.Source) && fetch.VerifiedBy(last.validator) == v.input.keys, spec.Source.Inline != nil && !last.restored:
		return time.Time{}, stepRest
	}

	return last.at.Add(withJitter(intervalOf(spec, v.pace), last.jitter)), stepRest
}

// covers reports whether a success has the same input. It does not know whether Secrets and
// ConfigMaps have changed since an earlier process; the fetch that follows a restart finds that. It
// does know which keys verified the image.
func (s *success) covers(in input) bool {
	return s.input == in || s.restored && s.input.source == in.source && fetch.VerifiedBy(s.validator) == in.keys
}

// intervalOf returns the pause between fetches, at least the minimum.
func intervalOf(spec *corev1alpha1.PackageRepositorySpec, pace limits.Pace) time.Duration {
	if spec.Interval == nil {
		return pace.Of(repositoryInterval)
	}
	return pace.Of(max(spec.Interval.Duration, limits.RepositoryIntervalMin))
}

// withJitter spreads the fetches of repositories that were created together.
func withJitter(interval time.Duration, jitter float64) time.Duration {
	return interval + time.Duration(float64(interval)*jitter)
}
