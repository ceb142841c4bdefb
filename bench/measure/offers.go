package measure

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/internal/limits"
)

const (
	repositoryName = "bench"
	repositories   = "packagerepositories." + corev1alpha1.GroupName
	// refreshes is the number of conditional requests to the source in the scenario Refresh.
	refreshes = 2
)

// source is a web server with the archive of a repository.
type source struct {
	*httptest.Server
	mu               sync.Mutex
	archive          []byte
	full, unmodified int
}

// ServeHTTP answers conditional requests like web servers.
func (s *source) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	etag := fmt.Sprintf(`"%x"`, sha256.Sum256(s.archive))
	w.Header().Set("ETag", etag)
	if r.Header.Get("If-None-Match") == etag {
		s.unmodified++
		w.WriteHeader(http.StatusNotModified)
		return
	}
	s.full++
	_, _ = w.Write(s.archive)
}

func (s *source) set(archive []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.archive = archive
}

func (s *source) requests() (full, unmodified int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.full, s.unmodified
}

// archive is a repository of the workload's packages and versions, each with notes and a schema.
// The first package has more additional versions.
func (w Workload) archive(more int) ([]byte, error) {
	var b bytes.Buffer
	t := tar.NewWriter(&b)
	for p := range w.Packages {
		versions := w.Objects
		if p == 0 {
			versions += more
		}
		text := "apiVersion: manifests.package-operator.run/v1alpha1\nkind: Repository\nmetadata: {name: bench}\n"
		for v := range versions {
			text += offer(fmt.Sprintf("package-%04d", p), fmt.Sprintf("1.%d.0", v))
		}
		if err := t.WriteHeader(&tar.Header{Name: fmt.Sprintf("packages/%04d.yaml", p), Mode: 0o644, Size: int64(len(text))}); err != nil {
			return nil, err
		}
		if _, err := t.Write([]byte(text)); err != nil {
			return nil, err
		}
	}

	return b.Bytes(), t.Close()
}

func offer(name, version string) string {
	digest := fmt.Sprintf("%x", sha256.Sum256([]byte(name+version)))
	return fmt.Sprintf(`---
apiVersion: manifests.package-operator.run/v1alpha1
kind: RepositoryEntry
metadata: {name: %s.%s}
data:
  name: %s
  image: registry.example.com/%s
  digest: %s
  versions: [v%s]
  display: {shortDescription: A package of the benchmark}
  release: {notes: News of %s}
  configSchema: {type: object, properties: {size: {type: integer, description: How many there are, default: 3}, name: {type: string}}}
`, name, digest, name, name, digest, version, version)
}

// publish measures the time from the creation of a repository to the status that reports all offers
// as published.
func (c *Cluster) publish() Measurement {
	c.tb.Helper()
	c.source = &source{}
	c.source.Server = httptest.NewServer(c.source)
	c.tb.Cleanup(c.source.Close)
	c.serve(0)
	r := &corev1alpha1.PackageRepository{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: repositoryName}}
	r.Spec.Source.HTTP = &corev1alpha1.RepositoryHTTPSource{URL: c.source.URL + "/repository.tar"}
	r.Spec.Interval = &metav1.Duration{Duration: limits.RepositoryIntervalMin}
	m := c.observe(func() (cause, effect sandbox.Filter) {
		must(c.tb, c.Client.Create(c.tb.Context(), r))
		c.waitOffered(c.Total())
		return all(byAdmin, sandbox.ByResource(repositories), sandbox.ByVerb("create")), writeOf(repositories, statusOf)
	})

	m.Notes = []string{c.bytes()}
	return m
}

// refresh measures some conditional requests to a source without changes.
func (c *Cluster) refresh() Measurement {
	c.tb.Helper()
	return c.measure(func() ([]sandbox.Entry, Span) {
		s := Span{Start: time.Now()}
		_, before := c.source.requests()
		harness.Eventually(c.tb, c.timeout(), "the source to be asked", func(context.Context) error {
			if _, n := c.source.requests(); n < before+refreshes {
				return fmt.Errorf("%d requests", n-before)
			}
			return nil
		})
		c.waitQuiescent()
		s.End = time.Now()
		return c.since(), s
	})
}

// newVersion measures the time from the request to fetch a source with an additional version to the
// status that reports it as published.
func (c *Cluster) newVersion() Measurement {
	c.tb.Helper()
	return c.observe(func() (cause, effect sandbox.Filter) {
		r := &corev1alpha1.PackageRepository{}
		must(c.tb, c.Client.Get(c.tb.Context(), client.ObjectKey{Namespace: namespace, Name: repositoryName}, r))
		before := r.DeepCopy()
		r.Annotations = map[string]string{corev1alpha1.RetryAnnotation: "a new version"}
		c.serve(1)
		must(c.tb, c.Client.Patch(c.tb.Context(), r, client.MergeFrom(before)))
		c.waitOffered(c.Total() + 1)
		return all(byAdmin, sandbox.ByResource(repositories), sandbox.ByVerb("patch")), writeOf(repositories, statusOf)
	})
}

func (c *Cluster) serve(more int) {
	c.tb.Helper()
	archive, err := c.archive(more)
	must(c.tb, err)
	c.source.set(archive)
}

// waitOffered waits until the repository reports this many versions.
func (c *Cluster) waitOffered(versions int) {
	c.tb.Helper()
	harness.Eventually(c.tb, c.timeout(), "the repository to be published", func(ctx context.Context) error {
		r := &corev1alpha1.PackageRepository{}
		if err := c.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: repositoryName}, r); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(r.Status.Conditions, corev1alpha1.ConditionReady) || int(r.Status.Versions) != versions {
			return fmt.Errorf("%d versions, %+v", r.Status.Versions, r.Status.Conditions)
		}
		return nil
	})
}

// bytes describes the size of the archive and of the published specs.
func (c *Cluster) bytes() string {
	c.tb.Helper()
	published := 0
	list := &corev1alpha1.AvailablePackageList{}
	must(c.tb, c.Client.List(c.tb.Context(), list, client.InNamespace(namespace)))
	for i := range list.Items {
		encoded, err := json.Marshal(list.Items[i].Spec)
		must(c.tb, err)
		published += len(encoded)
	}
	return fmt.Sprintf("%.1f MiB fetched, %.1f MiB published", float64(len(c.source.archive))/mebibyte, float64(published)/mebibyte)
}
