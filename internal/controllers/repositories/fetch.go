package repositories

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/fetch"
	"lockstep.run/lockstep/internal/kube/background"
	"lockstep.run/lockstep/internal/kube/mutationcache"
	"lockstep.run/lockstep/internal/kube/queueing"
)

const repositoryBackoffMin = 10 * time.Second // after a fetch that failed; at most the interval

// startFetches starts the fetches that were decided. Their ends enqueue the catalogue.
func (s *reconciliation) startFetches() {
	for _, v := range s.views {
		if v.step == stepFetch {
			s.startFetch(v)
		}
	}
}

// startFetch queues a fetch of the present input.
func (s *reconciliation) startFetch(v *view) {
	st := s.states[v.repository.GetName()]
	a := &attempt{In: v.input, RetryValue: background.RetryValue(v.repository), Started: s.now}
	repository := v.repository.DeepCopyObject().(corev1alpha1.GenericPackageRepository)
	j := job{repository: repository, namespace: s.namespaceOf(v.repository), image: v.image}
	j.known = knownOf(st.last, v)
	// The same input continues the backoff. Rejected content is not downloaded again unless it has
	// changed.
	if failed := v.attempt; failed != nil && failed.Done && failed.In == a.In {
		a.Failures = failed.Failures
		if failed.Out.rejected != nil {
			a.Out.rejected, j.known = failed.Out.rejected, failed.Out.rejected.validator
		}
	}
	st.fetchStarted = s.now
	s.queueFetch(s.memory.Start(s.life, &st.attempt, a), j, st, a)
}

// knownOf returns the validator of the known content. If the condition Verified is not True, the
// image is verified again, even if the same keys verified it before.
func knownOf(last *success, v *view) string {
	switch {
	case last == nil || last.incomplete || last.input.source != v.input.source:
		return ""
	case v.input.keys != "" && !meta.IsStatusConditionTrue(v.repository.RepositoryStatus().Conditions, corev1alpha1.ConditionVerified):
		return fetch.Unverified(last.validator)
	}
	return last.validator
}

// queueFetch runs an attempt when the queue of its host has capacity.
func (r *Reconciler) queueFetch(ctx context.Context, j job, st *state, a *attempt) {
	host := hostOf(&j.repository.RepositorySpec().Source, j.image)
	if host == "" {
		host = "of " + keyOf(j.repository).String() // needs no other one
	}
	if j.long {
		host += ", long"
	}

	background.Run(ctx, &r.hosts, background.Job{Owner: j.repository, Host: host, Doing: "fetching the repository"},
		func(ctx context.Context) (*result, error) {
			whole, err := r.whole(ctx, j)
			if err != nil {
				return nil, err
			}
			return r.fetch(ctx, whole)
		},
		func(got *result, err error) {
			if ctx.Err() != nil {
				return // another fetch has started, or the repository was deleted
			}
			if errors.Is(err, queueing.ErrLong) {
				j.long = true
				r.queueFetch(ctx, j, st, a)
				return
			}
			if _, current := r.memory.Update(&st.attempt, a, func(a *attempt) { r.end(j, a, got, err) }); current {
				r.enqueue(j.repository.GetNamespace())
			}
		})
}

// whole returns a job with all files of its repository, which the caches keep as a digest if there
// is no room for them.
func (r *Reconciler) whole(ctx context.Context, j job) (job, error) {
	if !mutationcache.Reduced(j.repository) {
		return j, nil
	}
	repository := corev1alpha1.ScopeOf(j.repository.GetNamespace()).NewPackageRepository()
	if err := r.Reader.Get(ctx, keyOf(j.repository), repository); err != nil {
		return j, fmt.Errorf("read the repository: %w", err)
	}
	j.repository = repository
	return j, nil
}

// end ends an attempt with its outcome.
func (r *Reconciler) end(j job, a *attempt, got *result, err error) {
	before := a.Out.rejected
	a.Done, a.Err, a.Out = true, err, download{result: got}
	if err == nil && got.notModified && before != nil {
		a.Out.result, a.Err = nil, before // it is still there
	}
	if a.Err == nil {
		return
	}

	spec := j.repository.RepositorySpec()
	if errors.As(a.Err, &a.Out.rejected) && fetch.Static(spec.Source) {
		return // it stays so
	}

	a.RetryAfter(r.Now(), repositoryBackoffMin, intervalOf(spec, r.Pace))
}
