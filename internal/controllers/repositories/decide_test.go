package repositories

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
)

var (
	start  = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	static = "registry.test/shop@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
)

// newRepository returns a repository of generation 2 with an image as its source.
func newRepository(change ...func(*corev1alpha1.PackageRepository)) *corev1alpha1.PackageRepository {
	r := &corev1alpha1.PackageRepository{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "stable", UID: "uid", Generation: 2}}
	r.Spec.Source.Image = &corev1alpha1.RepositoryImageSource{Ref: "registry.test/shop:latest"}
	for _, c := range change {
		c(r)
	}
	return r
}

func paused(r *corev1alpha1.PackageRepository) { r.Spec.Paused = true }
func byDigest(r *corev1alpha1.PackageRepository) {
	r.Spec.Source.Image.Ref = static
}
func retried(r *corev1alpha1.PackageRepository) {
	r.Annotations = map[string]string{corev1alpha1.RetryAnnotation: "now"}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	is := input{source: "s", versions: "1"}
	fetchedAt := func(ago time.Duration) *success { return &success{input: is, at: start.Add(-ago)} }
	running := &attempt{In: is, Started: start}
	failed := &attempt{In: is, Started: start, Done: true, Err: errors.New("no"), Retry: start.Add(10 * time.Second)}
	repeated, rejected := *failed, *failed
	repeated.Retry, rejected.Retry = start.Add(-time.Second), time.Time{}
	for name, tc := range map[string]struct {
		reason string
		change func(*corev1alpha1.PackageRepository)
		view   view
		want   step
		wait   time.Duration
	}{
		"new":                   {reason: "it is unknown", want: stepFetch},
		"paused":                {reason: "nothing is fetched", change: paused, want: stepPaused},
		"paused while fetching": {reason: "the fetch is not cut short", change: paused, view: view{attempt: running}, want: stepWait},
		"unknown inputs":        {reason: "they are known in a moment", view: view{waiting: true}, want: stepGather},
		"unreadable inputs":     {reason: "a Secret cannot be watched", view: view{inputError: "no"}, want: stepGather},
		"fetching":              {reason: "one at a time", view: view{attempt: running}, want: stepWait},
		"fetched":               {reason: "it is published", view: view{attempt: &attempt{In: is, Done: true, Out: download{result: &result{}}}}, want: stepPublish},
		"fetched, then paused":  {reason: "it is published all the same", change: paused, view: view{attempt: &attempt{In: is, Done: true, Out: download{result: &result{}}}}, want: stepPublish},
		"fetched another":       {reason: "the source changed meanwhile", view: view{attempt: &attempt{In: input{source: "x"}, Done: true, Out: download{result: &result{}}}}, want: stepFetch},
		"failed":                {reason: "it is repeated later", view: view{attempt: failed}, want: stepBackOff, wait: 10 * time.Second},
		"failed before":         {reason: "the pause is over", view: view{attempt: &repeated}, want: stepFetch},
		"failed for good":       {reason: "the content stays unchanged", view: view{attempt: &rejected}, want: stepBackOff},
		"retried":               {reason: "a failed fetch is repeated at once", change: retried, view: view{attempt: failed}, want: stepFetch},
		"at rest":               {reason: "the interval is not over", view: view{last: fetchedAt(time.Minute)}, want: stepRest, wait: 9 * time.Minute},
		"due":                   {reason: "the interval is over", view: view{last: fetchedAt(10 * time.Minute)}, want: stepFetch},
		"retried at rest":       {reason: "the annotation has a new value", change: retried, view: view{last: fetchedAt(time.Minute)}, want: stepFetch},
		"static":                {reason: "it never changes", change: byDigest, view: view{last: fetchedAt(time.Hour)}, want: stepRest},
		"static, not verified": {
			reason: "its signature is looked for again", change: byDigest, want: stepFetch,
			view: view{input: input{source: "s", versions: "1", keys: "k"}, last: &success{input: input{source: "s", versions: "1", keys: "k"}, at: start.Add(-time.Hour), validator: "sha256:a"}},
		},
		"static, retried": {reason: "it is requested", change: func(r *corev1alpha1.PackageRepository) { byDigest(r); retried(r) }, view: view{last: fetchedAt(time.Hour)}, want: stepFetch},
		"incomplete":      {reason: "not all of it is known", change: byDigest, view: view{last: &success{input: is, incomplete: true}}, want: stepFetch},
		"another Secret":  {reason: "at once", view: view{last: &success{input: input{source: "s", versions: "0"}, at: start}}, want: stepFetch},
		"after a restart": {reason: "its changes are requested", view: view{last: &success{input: input{source: "s"}, restored: true}}, want: stepFetch},
		"static after a restart": {
			reason: "it is as it was", change: byDigest, view: view{last: &success{input: input{source: "s"}, restored: true}}, want: stepRest,
		},
		"verified after a restart": {
			reason: "by the same keys", change: byDigest, want: stepRest,
			view: view{input: input{source: "s", versions: "1", policy: "by a verified by k", keys: "k"}, last: &success{input: input{source: "s"}, restored: true, validator: "sha256:a verified by k"}},
		},
		"other keys after a restart": {
			reason: "it is verified again", change: byDigest, want: stepFetch,
			view: view{input: input{source: "s", versions: "1", policy: "by a verified by l", keys: "l"}, last: &success{input: input{source: "s"}, restored: true, validator: "sha256:a verified by k"}},
		},
		"no keys after a restart": {
			reason: "its status has Verified", change: byDigest, want: stepFetch,
			view: view{last: &success{input: input{source: "s"}, restored: true, validator: "sha256:a verified by k"}},
		},
		"other keys": {
			reason: "it is verified again", change: byDigest, want: stepFetch,
			view: view{input: input{source: "s", versions: "1", keys: "l"}, last: fetchedAt(time.Minute)},
		},
		"refused, then other keys": {
			reason: "it is verified again", want: stepFetch,
			view: view{input: input{source: "s", versions: "1", keys: "l"}, attempt: failed},
		},
		"flapping": {
			reason: "another source, right after the last fetch started", want: stepWait, wait: 3 * time.Second,
			view: view{last: &success{input: input{source: "x"}, at: start}, fetchStarted: start.Add(-2 * time.Second)},
		},
		"flapping while fetching": {
			reason: "the fetch of the former source continues until then", want: stepWait, wait: 3 * time.Second,
			view: view{attempt: &attempt{In: input{source: "x"}, Started: start}, fetchStarted: start.Add(-2 * time.Second)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := tc.view
			if v.input == (input{}) {
				v.input = is
			}
			v.repository, v.now = newRepository(), start
			if tc.change != nil {
				v.repository = newRepository(tc.change)
			}
			if got, wait := decide(v); got != tc.want || wait != tc.wait {
				t.Errorf("step %d after %s, want %d after %s: %s", got, wait, tc.want, tc.wait, tc.reason)
			}
		})
	}
}

// A repository is never fetched while a fetch for the same input is running, while it is paused, or
// within the pause. It is never left alone forever unless it is static, paused, rejected or waits
// for an event.
func TestDecisions(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		at := func(name string) time.Time {
			return start.Add(time.Duration(rapid.IntRange(-100_000, 100).Draw(t, name)) * time.Second)
		}
		inputs := rapid.SampledFrom([]input{{source: "a", versions: "1"}, {source: "a", versions: "2"}, {source: "b", versions: "1"}, {source: "a", versions: "1", policy: "p", keys: "k"}})
		change := rapid.SampledFrom([]func(*corev1alpha1.PackageRepository){func(*corev1alpha1.PackageRepository) {}, paused, byDigest, retried})
		v := view{repository: newRepository(change.Draw(t, "repository")), input: inputs.Draw(t, "input"), now: start}
		if rapid.Bool().Draw(t, "succeeded") {
			v.last = &success{
				input: inputs.Draw(t, "last"), at: at("at"), incomplete: rapid.Bool().Draw(t, "incomplete"),
				restored: rapid.Bool().Draw(t, "restored"), jitter: rapid.Float64Range(0, repositoryJitter).Draw(t, "jitter"),
			}
		}
		if rapid.Bool().Draw(t, "attempted") {
			v.fetchStarted = at("fetchStarted")
			v.attempt = &attempt{In: inputs.Draw(t, "attempt"), Started: v.fetchStarted, Done: rapid.Bool().Draw(t, "done"), Retry: at("retry")}
			if v.attempt.Done && rapid.Bool().Draw(t, "failed") {
				v.attempt.Err = errors.New("no")
			}
		}
		got, wait := decide(v)
		spec := v.repository.RepositorySpec()
		if got == stepFetch {
			if v.attempt != nil && !v.attempt.Done && v.attempt.In == v.input || spec.Paused || !v.fetchStarted.IsZero() && start.Sub(v.fetchStarted) < limits.RepositoryPause {
				t.Errorf("fetches %+v", v)
			}
			return
		}
		never := got == stepPaused || got == stepPublish || got == stepWait && v.attempt != nil && !v.attempt.Done || spec.Source.Image.Ref == static
		if wait == 0 && !never {
			t.Errorf("step %d of %+v is for ever", got, v)
		}
	})
}

func TestIntervalOf(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		interval *metav1.Duration
		pace     limits.Pace
		want     time.Duration
	}{
		"none":             {want: repositoryInterval},
		"an hour":          {interval: &metav1.Duration{Duration: time.Hour}, want: time.Hour},
		"too short":        {interval: &metav1.Duration{Duration: time.Second}, want: limits.RepositoryIntervalMin},
		"at another pace":  {interval: &metav1.Duration{Duration: time.Hour}, pace: 0.1, want: 6 * time.Minute},
		"at the same pace": {interval: &metav1.Duration{Duration: time.Hour}, pace: 1, want: time.Hour},
	} {
		if got := intervalOf(&corev1alpha1.PackageRepositorySpec{Interval: tc.interval}, tc.pace); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
