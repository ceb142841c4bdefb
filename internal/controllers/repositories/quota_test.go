package repositories

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/fetch"
	"lockstep.run/lockstep/internal/kube/outbound"
	"lockstep.run/lockstep/internal/kube/quota"
	"lockstep.run/lockstep/test/require"
)

// The offers of repositories are bounded by namespace: a repository beyond the bound is refused,
// and its earlier offers stay counted.
func TestContentIsCounted(t *testing.T) {
	t.Parallel()
	p := &Pipeline{Fetcher: fetch.New(fetch.Options{}), Memory: quota.New(4 << 20)}
	read := func(namespace, name string, versions int) error {
		var text strings.Builder
		text.WriteString("apiVersion: manifests.package-operator.run/v1alpha1\nkind: Repository\nmetadata: {name: r}\n")
		for i := range versions {
			fmt.Fprintf(&text, "---\napiVersion: manifests.package-operator.run/v1alpha1\nkind: RepositoryEntry\nmetadata: {name: shop.%064d}\ndata: {image: registry.test/shop, digest: \"sha256:%064d\", versions: [v1.0.%d], name: shop}\n", i, i, i)
		}
		repository := &corev1alpha1.PackageRepository{}
		repository.Namespace, repository.Name = namespace, name
		source := fetch.Source{Spec: corev1alpha1.RepositorySource{Inline: &corev1alpha1.RepositoryInlineSource{Files: map[string]string{"r.yaml": text.String()}}}}
		fetched, err := p.fetchAndRead(t.Context(), source, job{repository: repository})
		if err == nil && fetched.content.versions != versions {
			t.Fatalf("%d versions are read of %d: %v", fetched.content.versions, versions, fetched.content.problems)
		}
		return err
	}
	require.NoError(t, read("team", "first", 900))
	err := read("team", "second", 900)
	var exceeded *quota.Exceeded
	if !errors.As(err, &exceeded) || !strings.Contains(err.Error(), "the repository second would take 1 MiB") {
		t.Errorf("beyond the share: %v", err)
	}
	if err := read("other", "first", 20); err != nil {
		t.Errorf("another namespace: %v", err)
	}
	if got := failure(view{attempt: &attempt{Err: err}}, &corev1alpha1.PackageRepositoryStatus{}); got.Reason != corev1alpha1.ReasonMemoryExceeded || got.Stalled {
		t.Errorf("it is reported as %+v", got)
	}
	p.Memory.Count(memoryKey("team", "first"), 0)
	if err := read("team", "second", 900); err != nil {
		t.Errorf("once the other one was deleted: %v", err)
	}
}

// A small repository is read regardless of other work, a large one in its turn with other work that
// takes memory.
func TestLargeRepositoriesAwaitMemory(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "apiVersion: manifests.package-operator.run/v1alpha1\nkind: Repository\nmetadata: {name: r}\n")
		if r.URL.Path == "/large.yaml" {
			fmt.Fprint(w, "# "+strings.Repeat("x", 2<<20)+"\n")
		}
		if r.URL.Path == "/expanded.yaml" { // which is large once each version has the notes
			var versions []string
			for i := range 100 {
				versions = append(versions, fmt.Sprintf("v1.%d.0", i))
			}
			digest := "sha256:" + strings.Repeat("1", 64)
			fmt.Fprintf(w, "---\napiVersion: manifests.package-operator.run/v1alpha1\nkind: RepositoryEntry\nmetadata: {name: web.%s}\n"+
				"data: {name: web, image: example.com/web, digest: %q, versions: [%s], release: {notes: %s}}\n",
				digest[7:], digest, strings.Join(versions, ", "), strings.Repeat("x", 30_000))
		}
	}))
	t.Cleanup(server.Close)
	p := &Pipeline{Fetcher: fetch.New(fetch.Options{Policy: outbound.Policy{Local: true}}), Memory: quota.New(100 << 20)}
	read := func(ctx context.Context, name string) error {
		repository := &corev1alpha1.PackageRepository{}
		repository.Namespace, repository.Name = "team", name
		source := fetch.Source{Spec: corev1alpha1.RepositorySource{HTTP: &corev1alpha1.RepositoryHTTPSource{URL: server.URL + "/" + name + ".yaml"}}}
		_, err := p.fetchAndRead(ctx, source, job{repository: repository})
		return err
	}
	release, err := p.Memory.Acquire(t.Context(), "other", math.MaxInt64)
	require.NoError(t, err)
	if err := read(t.Context(), "small"); err != nil {
		t.Errorf("a small one: %v", err)
	}
	for _, name := range []string{"large", "expanded"} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		if err := read(ctx, name); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s without memory: %v", name, err)
		}
		cancel()
	}
	release()
	for _, name := range []string{"large", "expanded", "large"} { // the memory is released
		if err := read(t.Context(), name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
