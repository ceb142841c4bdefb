package repositories_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/internal/limits"
)

// The source of a repository is fetched again in its interval. If it has nothing new, the manager
// sends the API server no request at all, not even for a status.
func TestInterval(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	server := newServer(t, document("shop@1.0.0"))
	r := newRepository(ns, "web", web(server.URL+"/repository.yaml"))
	r.Spec.Interval = every(limits.RepositoryIntervalMin)
	env.Create(t, r)
	awaitReady(t, r)
	env.Settle(t, ns)
	from := env.Journal(t)
	_, before := server.counts()
	harness.Eventually(t, patience, "the source to be fetched again", func(context.Context) error {
		if _, unmodified := server.counts(); unmodified < before+2 {
			return fmt.Errorf("%d requests", unmodified-before)
		}
		return nil
	})
	requests := from.Rest(t, ns) // a slow fetch does not change the status until it has ended
	full, unmodified := server.counts()
	t.Logf("%d conditional and %d full requests to the source: %d requests to the API server", unmodified, full, len(requests))
	if len(requests) > 0 || full != 1 {
		t.Errorf("%d full requests to the source, and to the API server:%s", full, harness.Lines(requests))
	}
	server.set(document("shop@2.0.0"))
	awaitOffers(t, ns, "shop@2.0.0=web")
}

// If the source no longer exists or becomes invalid, the last fetched content is still offered, and
// the status reports the error.
func TestBadSourceKeepsWhatWasFetched(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	server, r := offering(t, ns, "shop@1.0.0")
	failing := func(reason string, texts ...string) func(*corev1alpha1.PackageRepository) error {
		return func(r *corev1alpha1.PackageRepository) error {
			return harness.HasCondition(r, corev1alpha1.ConditionReady, metav1.ConditionFalse, reason, append(texts, "stays offered", r.Status.Artifact.Revision)...)
		}
	}
	server.set("kind: {")
	retry(t, r, "bad")
	await(t, r, "to report bad content", failing(corev1alpha1.ReasonContentInvalid, "repository.yaml"))
	if err := harness.HasCondition(r, corev1alpha1.ConditionStalled, metav1.ConditionTrue, corev1alpha1.ReasonContentInvalid); err != nil {
		t.Error(err)
	}
	server.fail(http.StatusInternalServerError)
	retry(t, r, "gone")
	await(t, r, "to report a missing source", failing(corev1alpha1.ReasonFetchFailed, "500"))
	awaitOffers(t, ns, "shop@1.0.0=web")
	server.fail(0)
	server.set(document("shop@1.0.0"))
	retry(t, r, "good")
	awaitReady(t, r)
	awaitOffers(t, ns, "shop@1.0.0=web")
	env.Settle(t, ns)
	if got := events(t, ns); !slices.Equal(got, []string{"Normal/Fetched", "Warning/ContentInvalid", "Warning/FetchFailed"}) {
		t.Errorf("events %v", got)
	}
}
