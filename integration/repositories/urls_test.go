package repositories_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
)

// The API server refuses credentials in a URL without quoting them. A rule or a pattern of the
// field itself would quote them.
func TestCredentialsInURLs(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	for name, source := range map[string]corev1alpha1.RepositorySource{
		"web": web("https://me:geheim@packages.example/r.yaml"),
		"git": {Git: &corev1alpha1.RepositoryGitSource{URL: "https://me:geheim@packages.example/r"}},
		"ssh": {Git: &corev1alpha1.RepositoryGitSource{URL: "ssh://me:geheim@packages.example/r"}},
	} {
		err := env.Client.Create(t.Context(), newRepository(ns, name, source))
		if err == nil || strings.Contains(err.Error(), "geheim") || !strings.Contains(err.Error(), ".url") || !strings.Contains(err.Error(), "without") {
			t.Errorf("%s: %v", name, err)
		}
		t.Logf("%s: %v", name, err)
	}
}

// A manager without --allow-local-sources fetches from neither its own pod nor its node nor
// services of the cloud, however a source leads there.
func TestLocalAddresses(t *testing.T) {
	t.Cleanup(func() {
		manager.Stop()
		manager = env.StartManager(suite, extraFlags()...)
	})
	reached := newServer(t, document("shop@1.0.0"))
	// The proxy represents servers elsewhere.
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		http.Redirect(w, req, reached.URL+"/?token=geheim", http.StatusFound)
	}))
	t.Cleanup(elsewhere.Close)
	t.Setenv("HTTP_PROXY", elsewhere.URL)
	manager.Stop()
	manager = env.StartManager(suite, extraFlags()[1:]...)
	ns := env.TestNamespace(t)
	const text = "loopback or link-local address, which sources may not be fetched from. If that is intended, start the manager with --allow-local-sources."
	cases := map[string]corev1alpha1.RepositorySource{
		"loopback": web(reached.URL),
		"redirect": web("http://packages.example/loopback"),
		"git":      {Git: &corev1alpha1.RepositoryGitSource{URL: reached.URL + "/repo"}},
	}
	for name, source := range cases {
		env.Create(t, newRepository(ns, name, source))
	}
	for name, source := range cases {
		await(t, newRepository(ns, name, source), "to be refused", func(r *corev1alpha1.PackageRepository) error {
			return harness.HasCondition(r, corev1alpha1.ConditionReady, metav1.ConditionFalse, corev1alpha1.ReasonFetchFailed, text)
		})
	}
	if full, unmodified, refused := reached.counts(); full+unmodified+refused > 0 {
		t.Error("the server was reached")
	}
	if strings.Contains(manager.Log(), "geheim") {
		t.Error("the log of the manager has a query")
	}
}
