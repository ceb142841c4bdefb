package repositories

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
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
		"new":                   {"it is unknown", nil, view{}, stepFetch, 0},
		"paused":                {"nothing is fetched", paused, view{}, stepPaused, 0},
		"paused while fetching": {"the fetch is not cut short", paused, view{attempt: running}, stepWait, 0},
		"unknown inputs":        {"they are known in a moment", nil, view{waiting: true}, stepGather, 0},
		"unreadable inputs":     {"a Secret cannot be watched", nil, view{inputError: "no"}, stepGather, 0},
		"fetching":              {"one at a time", nil, view{attempt: running}, stepWait, 0},
		"fetched": {"it is published",
			nil, view{attempt: &attempt{In: is, Done: true, Out: download{result: &result{}}}}, stepPublish, 0},
		"fetched, then paused": {"it is published all the same",
			paused, view{attempt: &attempt{In: is, Done: true, Out: download{result: &result{}}}}, stepPublish, 0},
		"fetched another": {"the source changed meanwhile",
			nil, view{attempt: &attempt{In: input{source: "x"}, Done: true, Out: download{result: &result{}}}}, stepFetch, 0},
		"failed":          {"it is repeated later", nil, view{attempt: failed}, stepBackOff, 10 * time.Second},
		"failed before":   {"the pause is over", nil, view{attempt: &repeated}, stepFetch, 0},
		"failed for good": {"the content stays unchanged", nil, view{attempt: &rejected}, stepBackOff, 0},
		"retried":         {"a failed fetch is repeated at once", retried, view{attempt: failed}, stepFetch, 0},
		"at rest":         {"the interval is not over", nil, view{last: fetchedAt(time.Minute)}, stepRest, 9 * time.Minute},
		"due":             {"the interval is over", nil, view{last: fetchedAt(10 * time.Minute)}, stepFetch, 0},
		"retried at rest": {"the annotation has a new value", retried, view{last: fetchedAt(time.Minute)}, stepFetch, 0},
		"static":          {"it never changes", byDigest, view{last: fetchedAt(time.Hour)}, stepRest, 0},
		"static, not verified": {"its signature is looked for again",
			byDigest,
			view{input: input{source: "s", versions: "1", keys: "k"}, last: &success{input: input{source: "s", versions: "1", keys: "k"}, at: start.Add(-time.Hour), validator: "sha256:a"}},
			stepFetch, 0},
		"static, retried": {"it is requested",
			func(r *corev1alpha1.PackageRepository) { byDigest(r); retried(r) }, view{last: fetchedAt(time.Hour)}, stepFetch, 0},
		"incomplete":             {"not all of it is known", byDigest, view{last: &success{input: is, incomplete: true}}, stepFetch, 0},
		"another Secret":         {"at once", nil, view{last: &success{input: input{source: "s", versions: "0"}, at: start}}, stepFetch, 0},
		"after a restart":        {"its changes are requested", nil, view{last: &success{input: input{source: "s"}, restored: true}}, stepFetch, 0},
		"static after a restart": {"it is as it was", byDigest, view{last: &success{input: input{source: "s"}, restored: true}}, stepRest, 0},
		"verified after a restart": {"by the same keys",
			byDigest,
			view{input: input{source: "s", versions: "1", policy: "by a verified by k", keys: "k"}, last: &success{input: input{source: "s"}, restored: true, validator: "sha256:a verified by k"}},
			stepRest, 0},
		"other keys after a restart": {"it is verified again",
			byDigest,
			view{input: input{source: "s", versions: "1", policy: "by a verified by l", keys: "l"}, last: &success{input: input{source: "s"}, restored: true, validator: "sha256:a verified by k"}},
			stepFetch, 0},
		"no keys after a restart": {"its status has Verified",
			byDigest, view{last: &success{input: input{source: "s"}, restored: true, validator: "sha256:a verified by k"}}, stepFetch, 0},
		"other keys": {"it is verified again",
			byDigest, view{input: input{source: "s", versions: "1", keys: "l"}, last: fetchedAt(time.Minute)}, stepFetch, 0},
		"refused, then other keys": {"it is verified again",
			nil, view{input: input{source: "s", versions: "1", keys: "l"}, attempt: failed}, stepFetch, 0},
		"flapping": {"another source, right after the last fetch started",
			nil, view{last: &success{input: input{source: "x"}, at: start}, fetchStarted: start.Add(-2 * time.Second)}, stepWait, 3 * time.Second},
		"flapping while fetching": {"the fetch of the former source continues until then",
			nil, view{attempt: &attempt{In: input{source: "x"}, Started: start}, fetchStarted: start.Add(-2 * time.Second)}, stepWait, 3 * time.Second},
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
		require.Equal(t, tc.want, intervalOf(&corev1alpha1.PackageRepositorySpec{Interval: tc.interval}, tc.pace), name)
	}
}
