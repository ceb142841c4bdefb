package repositories_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

// patience is how long a test waits for a condition.
var patience = harness.Patience

// pace shortens the manager's intervals, pauses and retries to a tenth.
const pace limits.Pace = 0.1

// extraFlags returns flags for the manager in addition to the harness's.
func extraFlags() []string { return []string{"--allow-local-sources", fmt.Sprintf("--pace=%v", pace)} }

// entry is a RepositoryEntry of a package in a version. Another salt makes it another image.
func entry(name, version, salt string) string {
	digest := fmt.Sprintf("%x", sha256.Sum256([]byte(name+version+salt)))
	return fmt.Sprintf(`apiVersion: manifests.package-operator.run/v1alpha1
kind: RepositoryEntry
metadata: {name: %s.%s}
data:
  name: %s
  image: registry.example.com/%s
  digest: %s
  versions: [v%s]
  display: {shortDescription: A package for tests}
  release: {notes: News of %s}
`, name, digest, name, name, digest, version, version)
}

// document is a repository of packages, each in the form name@version or name@version@salt.
func document(packages ...string) string {
	text := "apiVersion: manifests.package-operator.run/v1alpha1\nkind: Repository\nmetadata: {name: test}\n"
	for _, p := range packages {
		parts := append(strings.Split(p, "@"), "")
		text += "---\n" + entry(parts[0], parts[1], parts[2])
	}
	return text
}

// newRepository returns a PackageRepository of a source.
func newRepository(ns, name string, source corev1alpha1.RepositorySource) *corev1alpha1.PackageRepository {
	r := &corev1alpha1.PackageRepository{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	r.Spec.Source = source
	return r
}

func inline(packages ...string) corev1alpha1.RepositorySource {
	return corev1alpha1.RepositorySource{Inline: &corev1alpha1.RepositoryInlineSource{Files: map[string]string{"repository.yaml": document(packages...)}}}
}

func web(url string) corev1alpha1.RepositorySource {
	return corev1alpha1.RepositorySource{HTTP: &corev1alpha1.RepositoryHTTPSource{URL: url}}
}

// webServer serves one file with an ETag, and counts requests.
type webServer struct {
	*httptest.Server
	mu               sync.Mutex
	full, unmodified int // answers
	content, etag    string
	status           int
}

func newServer(t *testing.T, content string) *webServer {
	t.Helper()
	s := &webServer{}
	s.set(content)
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *webServer) set(content string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.content, s.etag = content, fmt.Sprintf(`"%x"`, sha256.Sum256([]byte(content)))
}

func (s *webServer) fail(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

func (s *webServer) counts() (full, unmodified int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.full, s.unmodified
}

func (s *webServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status != 0 {
		w.WriteHeader(s.status)
		return
	}
	w.Header().Set("ETag", s.etag)
	if req.Header.Get("If-None-Match") == s.etag {
		s.unmodified++
		w.WriteHeader(http.StatusNotModified)
		return
	}
	s.full++
	_, _ = io.WriteString(w, s.content)
}

// offering returns the repository web that offers packages, when it is ready, and its server.
func offering(t *testing.T, ns string, packages ...string) (*webServer, *corev1alpha1.PackageRepository) {
	t.Helper()
	server := newServer(t, document(packages...))
	r := newRepository(ns, "web", web(server.URL+"/repository.yaml"))
	env.Create(t, r)
	return server, awaitReady(t, r)
}

// retry requests a fetch of a repository at once.
func retry[T client.Object](t *testing.T, obj T, value string) {
	t.Helper()
	harness.Edit(t, env, obj, func(o T) {
		annotations := maps.Clone(o.GetAnnotations())
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[corev1alpha1.RetryAnnotation] = value
		o.SetAnnotations(annotations)
	})
}

// awaitReady waits until the content of a repository is offered.
func awaitReady[T corev1alpha1.GenericPackageRepository](t *testing.T, r T) T {
	t.Helper()
	return await(t, r, "to be ready", func(r T) error {
		return harness.HasCondition(r, corev1alpha1.ConditionReady, metav1.ConditionTrue, corev1alpha1.ReasonFetched)
	})
}

// awaitHandled waits until a repository was fetched for a value of the retry annotation.
func awaitHandled[T corev1alpha1.GenericPackageRepository](t *testing.T, r T, value string) T {
	t.Helper()
	return await(t, r, "to be fetched again", func(r T) error {
		if got := r.RepositoryStatus().LastHandledRetry; got != value {
			return fmt.Errorf("lastHandledRetry is %q: %+v", got, *r.StatusConditions())
		}
		return nil
	})
}

// offers lists the offers published in a namespace, as name@version=repository.
func offers(t *testing.T, ns string) []string {
	t.Helper()
	list := corev1alpha1.ScopeOf(ns).NewAvailablePackageList()
	require.NoError(t, env.Client.List(t.Context(), list, client.InNamespace(ns)))
	all := []string{}
	for _, object := range list.GenericAvailablePackages() {
		for _, v := range object.AvailableSpec().Versions {
			all = append(all, fmt.Sprintf("%s@%s=%s", object.AvailableSpec().PackageName, v.Version, v.Repository))
		}
	}
	slices.Sort(all)
	return all
}

// awaitOffers waits until exactly these versions are published.
func awaitOffers(t *testing.T, ns string, want ...string) {
	t.Helper()
	slices.Sort(want)
	harness.Eventually(t, patience, "the offers of "+ns, func(context.Context) error {
		if got := offers(t, ns); !slices.Equal(got, want) {
			return fmt.Errorf("got %v, want %v", got, want)
		}
		return nil
	})
}

// available reads the first part of a package.
func available(t *testing.T, ns, name string) *corev1alpha1.AvailablePackage {
	t.Helper()
	object := &corev1alpha1.AvailablePackage{}
	require.NoError(t, env.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name}, object))
	return object
}

// events returns the reasons of the events about repositories, sorted.
func events(t *testing.T, ns string) []string {
	t.Helper()
	list := &eventsv1.EventList{}
	require.NoError(t, env.Client.List(t.Context(), list, client.InNamespace(ns)))
	var reasons []string
	for _, e := range list.Items {
		reasons = append(reasons, e.Type+"/"+e.Reason)
	}
	slices.Sort(reasons)
	return reasons
}

// tally counts the requests about a repository whose fetch started after a time. It omits the
// status of the running fetch, which is only written if the fetch takes longer than
// limits.RepositoryStatusDelay.
func tally(began time.Time, entries []sandbox.Entry) map[string]int {
	const status = "update packagerepositories/status"
	counts := harness.Tally(entries)
	first := slices.IndexFunc(entries, func(e sandbox.Entry) bool { return e.Object.Subresource == "status" })
	if counts[status] == 2 && entries[first].Received.Sub(began) >= limits.RepositoryStatusDelay {
		counts[status] = 1
	}
	return counts
}

func every(d time.Duration) *metav1.Duration { return ptr.To(metav1.Duration{Duration: d}) }

// await reads obj again and again until check returns nil.
func await[T client.Object](t *testing.T, obj T, what string, check func(T) error) T {
	t.Helper()
	return harness.Await(t, env, patience, obj, what, check)
}
