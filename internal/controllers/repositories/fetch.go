package repositories

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"lockstep.run/lockstep/internal/catalog/fetch"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/kube/queueing"
)

// startFetches begins the fetches that were decided, whose ends enqueue the catalogue.
func (s *reconciliation) startFetches() {
	for _, v := range s.views {
		if v.step == stepFetch {
			s.startFetch(v)
		}
	}
}

func (s *reconciliation) startFetch(v *view) {
	st := s.states[v.repository.GetName()]
	a := &attempt{input: v.input, retryValue: retryValue(v.repository), started: s.now}
	j := job{repository: copyOf(v.repository), namespace: s.namespaceOf(v.repository)}
	if last := st.last; last != nil && !last.incomplete && last.input.source == v.input.source {
		j.known = last.validator
	}
	if failed := v.attempt; failed != nil && failed.done && failed.input == a.input {
		a.failures = failed.failures
		if failed.rejected != nil {
			a.rejected, j.known = failed.rejected, failed.rejected.validator
		}
	}
	ctx, cancel := context.WithCancel(s.life)
	a.cancel = cancel
	st.began = s.now
	s.memory.setAttempt(st, a)
	r := s.Reconciler
	r.queueFetch(ctx, j, st, a)
}

// queueFetch runs an attempt when the queue of its host and level has capacity.
func (r *Reconciler) queueFetch(ctx context.Context, j job, st *state, a *attempt) {
	host := hostOf(&j.repository.RepositorySpec().Source)
	if host == "" {
		host = "of " + keyOf(j.repository).String() // needs no other one
	}
	if j.level > 0 {
		host = fmt.Sprintf("%s, level %d", host, j.level)
	}
	r.hosts.Run(host, j.repository.GetNamespace(), func() { r.runFetch(ctx, j, st, a) })
}

// runFetch fetches, unless the attempt was cancelled while it waited.
func (r *Reconciler) runFetch(ctx context.Context, j job, st *state, a *attempt) {
	if ctx.Err() != nil {
		return
	}
	fetched, err := r.try(ctx, j)
	if level, deferred := queueing.Deferred(err); deferred && ctx.Err() == nil {
		j.level = level
		r.queueFetch(ctx, j, st, a)
		return
	}
	if ctx.Err() != nil {
		return // another one has begun, or the repository is gone
	}
	ended := r.end(j, a, fetched, err)
	if r.memory.endAttempt(st, a, ended) {
		r.count(j, ended)
		r.enqueue(j.repository.GetNamespace())
	}
	a.cancel()
}

// end returns an attempt with its outcome.
func (r *Reconciler) end(j job, a *attempt, fetched *result, err error) *attempt {
	ended := *a
	ended.done, ended.result, ended.err, ended.rejected = true, fetched, err, nil
	if err == nil && fetched.notModified && a.rejected != nil {
		ended.result, ended.err = nil, a.rejected // it is still there
	}
	if ended.err == nil {
		return &ended
	}
	spec := j.repository.RepositorySpec()
	if errors.As(ended.err, &ended.rejected) && fetch.Static(spec.Source) {
		return &ended // it stays so
	}
	ended.retry = r.Now().Add(backoff(a.failures, intervalOf(spec, r.Pace)))
	ended.failures++
	return &ended
}

// try returns a panic as an error of this one repository.
func (r *Reconciler) try(ctx context.Context, j job) (fetched *result, err error) {
	defer func() {
		if p := recover(); p != nil {
			logger := log.FromContext(ctx).WithValues("namespace", j.repository.GetNamespace(), "name", j.repository.GetName())
			err = panics.Recovered(logger, p, "fetching the repository")
		}
	}()
	return r.fetch(ctx, j)
}

func (r *Reconciler) count(j job, ended *attempt) {
	key := types.NamespacedName{Namespace: j.repository.GetNamespace(), Name: j.repository.GetName()}
	r.memory.count(key, func(f *fetches) {
		switch {
		case ended.err != nil:
			f.failed++
		case ended.result.notModified:
			f.unmodified++
		default:
			f.modified++
		}
	})
}
