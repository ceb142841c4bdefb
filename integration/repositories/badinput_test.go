package repositories_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/gittest"
	"lockstep.run/lockstep/test/require"
)

// badInput is a source that something is wrong with, and what its repository says.
type badInput struct {
	source corev1alpha1.RepositorySource
	// reason of Ready=False; empty where the rest is offered, and status.problems has the texts.
	reason string
	texts  []string
}

// check compares the status, and logs its text.
func (b badInput) check(t *testing.T, ns, name string) {
	t.Helper()
	began := time.Now()
	r := await(t, newRepository(ns, name, b.source), "to report", func(r *corev1alpha1.PackageRepository) error {
		if b.reason != "" {
			return harness.HasCondition(r, corev1alpha1.ConditionReady, metav1.ConditionFalse, b.reason, b.texts...)
		}
		problems := strings.Join(r.Status.Problems, "\n")
		for _, text := range b.texts {
			if !strings.Contains(problems, text) {
				return fmt.Errorf("problems %q, which lack %q", r.Status.Problems, text)
			}
		}
		return harness.HasCondition(r, corev1alpha1.ConditionReady, metav1.ConditionTrue, corev1alpha1.ReasonFetched, "status.problems")
	})
	for _, c := range r.Status.Conditions {
		if c.Type == corev1alpha1.ConditionReady {
			t.Logf("%s after %v: %s %s", name, time.Since(began).Round(100*time.Millisecond), c.Message, strings.Join(r.Status.Problems, "\n"))
		}
	}
}

// The fault of a repository is named, with a remedy, in bounded memory and time; a good
// one is served beside it.
func TestBadInput(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	good := newServer(t, document("shop@1.0.0"))
	serve := func(content string) corev1alpha1.RepositorySource {
		return web(newServer(t, content).URL + "/r.tar.gz?token=geheim")
	}
	secret := web(good.URL + "/missing.yaml?token=geheim")
	secret.HTTP.SHA256 = strings.Repeat("0", 64)
	cases := map[string]badInput{
		"refused":      {web("http://127.0.0.1:1/repository.yaml"), corev1alpha1.ReasonFetchFailed, []string{"127.0.0.1:1"}},
		"not-yaml":     {files("a.yaml", "{{{"), corev1alpha1.ReasonContentInvalid, []string{"a.yaml"}},
		"other-kinds":  {files("a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"), corev1alpha1.ReasonContentInvalid, []string{"ConfigMap"}},
		"missing-file": {filesFrom("missing"), corev1alpha1.ReasonFetchFailed, []string{"ConfigMap", "missing"}},
		"other-digest": {secret, corev1alpha1.ReasonFetchFailed, []string{"SHA-256", "http.sha256", "missing.yaml?…"}},

		"archive-bomb": {serve(bomb(t, limits.UnpackedBytes>>20+1)), corev1alpha1.ReasonFetchFailed, []string{"limit exceeded", fmt.Sprint(limits.UnpackedBytes)}},
		"file-bomb":    {serve(zipped(t, "a.yaml", strings.Repeat(" ", limits.FileBytes+1))), corev1alpha1.ReasonFetchFailed, []string{"a.yaml", fmt.Sprint(limits.FileBytes)}},
		"alias-bomb":   {serve(zipped(t, "a.yaml", aliases()+"---\n"+document("shop@1.0.0"))), "", []string{"a.yaml", fmt.Sprint(limits.DocumentNodes)}},
		"too-many": {serve(zipped(t, "a.yaml", versionsOf(limits.RepositoryOffers+1))), corev1alpha1.ReasonContentInvalid,
			[]string{fmt.Sprintf("more than %d versions", limits.RepositoryOffers)}},
		"not-semver": {inline("shop@1.0.0", "shop@one"), "", []string{`"vone" is no semantic version`}},
		"contradiction": {inline("shop@1.0.0", "cart@1.0.0", "cart@1.0.0@other"), "",
			[]string{"version 1.0.0 of cart", "with another content: neither is offered. Remove one of them."}},
		"schema": {files("a.yaml", document("shop@1.0.0")+"---\n"+entry("cart", "1.0.0", "")+"  configSchema: {type: list}\n"), "",
			[]string{"data.configSchema: the schema does not compile"}},
	}
	for name, tc := range cases {
		env.Create(t, newRepository(ns, name, tc.source))
	}
	for name, tc := range cases {
		tc.check(t, ns, name)
	}
	server := newRepository(ns, "good", web(good.URL+"/r.yaml"))
	env.Create(t, server)
	awaitReady(t, server)
	if log := manager.Log(); strings.Contains(log, "geheim") {
		t.Error("the log of the manager has a query")
	}
	t.Logf("the manager used %d MiB at most", memoryMiB(t, "VmHWM:"))
}

// Credentials in a URL are refused by the API server, which quotes them neither: a rule or pattern of the field itself would.
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

// A git repository whose history was rewritten offers what it has now; one that lost the
// branch keeps the content fetched before.
func TestGitHistoryRewritten(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	git := gittest.New(t)
	server := httptest.NewServer(git)
	t.Cleanup(server.Close)
	git.Commit(map[string]string{"a.yaml": document("shop@1.0.0")})
	first := git.Commit(map[string]string{"a.yaml": document("shop@1.0.0", "shop@1.1.0")})
	r := newRepository(ns, "git", corev1alpha1.RepositorySource{Git: &corev1alpha1.RepositoryGitSource{URL: server.URL + "/repo", Ref: "main"}})
	env.Create(t, r)
	awaitReady(t, r)
	if r.Status.Artifact.Revision != "main@"+first {
		t.Errorf("revision %s", r.Status.Artifact.Revision)
	}
	rewritten := git.Rewrite(map[string]string{"a.yaml": document("shop@1.0.0@other", "cart@1.0.0")})
	retry(t, r, "rewritten")
	awaitOffers(t, ns, "cart@1.0.0=git", "shop@1.0.0=git")
	awaitHandled(t, r, "rewritten")
	if r.Status.Artifact.Revision != "main@"+rewritten {
		t.Errorf("revision %s", r.Status.Artifact.Revision)
	}
	git.Run("", "branch", "-q", "-m", "main", "away")
	retry(t, r, "away")
	badInput{reason: corev1alpha1.ReasonFetchFailed, texts: []string{`there is no branch or tag "main"`, "stays offered"}}.check(t, ns, "git")
	awaitOffers(t, ns, "cart@1.0.0=git", "shop@1.0.0=git")
}

// A manager without --allow-local-sources fetches from neither its own pod nor its node nor services of the cloud, however
// a source leads there.
func TestLocalAddresses(t *testing.T) {
	t.Cleanup(func() {
		manager.Stop()
		manager = env.StartManager(suite, extraFlags()...)
	})
	reached := newServer(t, document("shop@1.0.0"))
	// The proxy stands for servers elsewhere.
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		target := map[string]string{"/loopback": reached.URL, "/link-local": "http://169.254.169.254/latest"}[req.URL.Path]
		http.Redirect(w, req, target+"/?token=geheim", http.StatusFound)
	}))
	t.Cleanup(elsewhere.Close)
	t.Setenv("HTTP_PROXY", elsewhere.URL)
	manager.Stop()
	manager = env.StartManager(suite, extraFlags()[1:]...)
	ns := env.TestNamespace(t)
	const text = "loopback or link-local address, which sources may not be fetched from. If that is intended, start the manager with --allow-local-sources."
	cases := map[string]badInput{
		"loopback":            {web(reached.URL), corev1alpha1.ReasonFetchFailed, []string{text}},
		"named":               {web(strings.Replace(reached.URL, "127.0.0.1", "localhost", 1)), corev1alpha1.ReasonFetchFailed, []string{"localhost is at the loopback or link-local address"}},
		"link-local":          {web("http://169.254.169.254/latest"), corev1alpha1.ReasonFetchFailed, []string{text}},
		"redirect-loopback":   {web("http://packages.example/loopback"), corev1alpha1.ReasonFetchFailed, []string{"http://packages.example/loopback: 127.0.0.1 is a " + text}},
		"redirect-link-local": {web("http://packages.example/link-local"), corev1alpha1.ReasonFetchFailed, []string{"169.254.169.254 is a " + text}},
		"git":                 {corev1alpha1.RepositorySource{Git: &corev1alpha1.RepositoryGitSource{URL: reached.URL + "/repo"}}, corev1alpha1.ReasonFetchFailed, []string{text}},
	}
	for name, tc := range cases {
		env.Create(t, newRepository(ns, name, tc.source))
	}
	for name, tc := range cases {
		tc.check(t, ns, name)
	}
	if full, unmodified, refused := reached.counts(); full+unmodified+refused > 0 {
		t.Error("the server was reached")
	}
	if strings.Contains(manager.Log(), "geheim") {
		t.Error("the log of the manager has a query")
	}
}

func files(path, content string) corev1alpha1.RepositorySource {
	return corev1alpha1.RepositorySource{Inline: &corev1alpha1.RepositoryInlineSource{Files: map[string]string{path: content}}}
}

func filesFrom(configMap string) corev1alpha1.RepositorySource {
	return corev1alpha1.RepositorySource{Inline: &corev1alpha1.RepositoryInlineSource{
		FilesFrom: []corev1alpha1.RepositoryFilesSource{{ConfigMapRef: &corev1alpha1.LocalConfigMapReference{Name: configMap}}},
	}}
}

func gzipped(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	require.NoError(t, err)
	_, err = w.Write(data)
	require.NoError(t, err, w.Close())
	return b.Bytes()
}

// zipped is a compressed archive of one file.
func zipped(t *testing.T, path, content string) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	require.NoError(t, w.WriteHeader(&tar.Header{Name: path, Mode: 0o644, Size: int64(len(content))}))
	_, err := w.Write([]byte(content))
	require.NoError(t, err, w.Close())
	return string(gzipped(t, b.Bytes()))
}

// bomb is an archive of a file of zeros, compressed a thousand to one.
func bomb(t *testing.T, mebibytes int) string {
	t.Helper()
	var header bytes.Buffer
	require.NoError(t, tar.NewWriter(&header).WriteHeader(&tar.Header{Name: "x.bin", Size: int64(mebibytes) << 20}))
	return string(append(gzipped(t, header.Bytes()), bytes.Repeat(gzipped(t, make([]byte, 1<<20)), mebibytes)...))
}

// aliases are ten levels of ten aliases each.
func aliases() string {
	text := "a0: &a0 lol\n"
	for i := 1; i < 10; i++ {
		text += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	return text
}

// versionsOf is a repository of n versions of the package shop, in entries of as many as one may have.
func versionsOf(n int) string {
	var b strings.Builder
	b.WriteString(document())
	for first := 0; first < n; first += limits.RepositoryVersions {
		var versions []string
		for i := first; i < min(n, first+limits.RepositoryVersions); i++ {
			versions = append(versions, fmt.Sprintf("v1.%d.0", i))
		}
		b.WriteString("---\n" + strings.Replace(entry("shop", "1.0.0", fmt.Sprint(first)), "[v1.0.0]", "["+strings.Join(versions, ",")+"]", 1))
	}
	return b.String()
}
