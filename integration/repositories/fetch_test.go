package repositories_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
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
	_, before, _ := server.counts()
	harness.Eventually(t, patience, "the source to be fetched again", func(context.Context) error {
		if _, unmodified, _ := server.counts(); unmodified < before+2 {
			return fmt.Errorf("%d requests", unmodified-before)
		}
		return nil
	})
	requests := from.Rest(t, ns) // a slow fetch does not change the status until it has ended
	full, unmodified, _ := server.counts()
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

// After a change of a Secret its repositories are fetched at once; a wrong one is named,
// and not quoted.
func TestSecretIsFollowed(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	server := newServer(t, document("shop@1.0.0"))
	server.password = "correct horse"
	source := web(server.URL + "/repository.yaml")
	source.HTTP.SecretRef = &corev1alpha1.LocalSecretReference{Name: "login"}
	r := newRepository(ns, "web", source)
	env.Create(t, r)
	await(t, r, "to miss the Secret", func(r *corev1alpha1.PackageRepository) error {
		return harness.HasCondition(r, corev1alpha1.ConditionReady, metav1.ConditionFalse, corev1alpha1.ReasonFetchFailed, "Secret", "login")
	})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "login"}, Type: corev1.SecretTypeBasicAuth}
	secret.StringData = map[string]string{"username": "me", "password": "battery staple"}
	env.Create(t, secret)
	await(t, r, "to be refused", func(r *corev1alpha1.PackageRepository) error {
		return harness.HasCondition(r, corev1alpha1.ConditionReady, metav1.ConditionFalse, corev1alpha1.ReasonFetchFailed, "401")
	})
	for _, c := range r.Status.Conditions {
		if strings.Contains(c.Message, "battery") {
			t.Errorf("%s quotes the Secret: %s", c.Type, c.Message)
		}
	}
	harness.Edit(t, env, secret, func(s *corev1.Secret) { s.Data["password"] = []byte("correct horse") })
	awaitReady(t, r)
	awaitOffers(t, ns, "shop@1.0.0=web")
}

// A restart after everything converged makes no writes, and only makes conditional requests to the
// sources.
func TestRestart(t *testing.T) {
	ns := env.TestNamespace(t)
	server := newServer(t, document("cart@1.0.0", "shop@1.0.0"))
	byWeb, byFiles := newRepository(ns, "web", web(server.URL+"/repository.yaml")), newRepository(ns, "files", inline("shop@2.0.0", "shop@1.0.0@other"))
	env.Create(t, byWeb)
	awaitReady(t, byWeb)
	env.Create(t, byFiles)
	awaitReady(t, byFiles)
	env.Settle(t, ns)

	manager.Stop()
	full, unmodified, _ := server.counts()
	from := env.Journal(t)
	manager = env.StartManager(suite, extraFlags()...)
	harness.Eventually(t, patience, "the manager to request the changes", func(context.Context) error {
		if _, n, _ := server.counts(); n == unmodified {
			return fmt.Errorf("%d requests", n)
		}
		return nil
	})
	var writes []string
	for _, e := range from.Rest(t, ns) {
		if sandbox.Writes()(e) {
			writes = append(writes, e.Verb+" "+e.RequestURI)
		}
	}
	if len(writes) > 0 {
		t.Errorf("written: %v", writes)
	}
	if n, _, _ := server.counts(); n != full {
		t.Errorf("fetched %d times", n-full)
	}
	// The offer that was shadowed before the restart takes its place.
	require.NoError(t, env.Client.Delete(t.Context(), byWeb))
	awaitOffers(t, ns, "shop@1.0.0=files", "shop@2.0.0=files")
}
