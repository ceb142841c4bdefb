package repositories

import (
	"errors"
	"math"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/conformance"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Suite{Operations: map[string]conformance.Operation{
		"sync-timer": conformance.Of(pausedAfter), "sync-due": conformance.Of(isDue),
	}}.Run(t)
}

func repositoryOf(syncPeriodSeconds int) *corev1alpha1.PackageRepository {
	repo := &corev1alpha1.PackageRepository{}
	repo.Spec.Interval = &metav1.Duration{Duration: time.Duration(syncPeriodSeconds) * time.Second}
	return repo
}

// failedOnce returns a fetch that failed after other failures in sequence; a negative number means
// that the counter overflowed.
func failedOnce(syncPeriodSeconds, failures int) *attempt {
	r := &Reconciler{Now: func() time.Time { return start }}
	if failures < 0 {
		failures = math.MaxInt
	}
	a := &attempt{Failures: failures - 1}
	r.end(job{repository: repositoryOf(syncPeriodSeconds)}, a, nil, errors.New("no"))
	return a
}

// pausedAfter: the pause after a number of failures in sequence.
func pausedAfter(_ *testing.T, in struct {
	Failures          []int
	SyncPeriodSeconds int
}, want *conformance.Expectation,
) {
	want.Otherwise(conformance.SlowerRetries)
	seconds := []int{}
	for _, failures := range in.Failures {
		seconds = append(seconds, int(failedOnce(in.SyncPeriodSeconds, failures).Retry.Sub(start).Seconds()))
	}
	want.Is("waitSeconds", seconds)
}

// isDue: whether a source is fetched some time after it was last.
func isDue(_ *testing.T, in struct {
	State             string
	Failures          int
	SyncPeriodSeconds int
	ElapsedSeconds    []int
}, want *conformance.Expectation,
) {
	failed := in.State == "ReconcileFailed"
	if failed {
		want.Otherwise(conformance.SlowerRetries)
	}
	due := []bool{}
	for _, elapsed := range in.ElapsedSeconds {
		v := view{repository: repositoryOf(in.SyncPeriodSeconds), now: start.Add(time.Duration(elapsed) * time.Second)}
		switch {
		case failed:
			v.attempt = failedOnce(in.SyncPeriodSeconds, in.Failures)
		case in.State != "":
			v.last = &success{at: start}
		}
		step, _ := decide(v)
		due = append(due, step == stepFetch)
	}
	want.Is("due", due)
}
