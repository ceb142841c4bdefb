package repositories_test

import (
	"strings"
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
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
