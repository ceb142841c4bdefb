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

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/fetch"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/kube/mutationcache"
	"lockstep.run/lockstep/internal/kube/outbound"
	"lockstep.run/lockstep/internal/kube/quota"
	"lockstep.run/lockstep/test/require"
)

// A repository's objects are read only as far as the required account can read them, and never
// Secrets of types with another purpose.
func TestSecretsOfRepositories(t *testing.T) {
	t.Parallel()
	get := func(_ context.Context, ref sources.Ref) (*sources.Object, error) {
		if ref.Name == "token" {
			return &sources.Object{Refused: "it is for others"}, nil
		}
		return &sources.Object{Data: map[string][]byte{"username": []byte("u")}}, nil
	}
	review := func(_ context.Context, review *authorizationv1.SubjectAccessReview) error {
		review.Status.Allowed = review.Spec.User == "system:serviceaccount:team:common" && review.Spec.ResourceAttributes.Name == "mine"
		return nil
	}
	for _, test := range []struct {
		reason    string
		required  bool
		account   string
		namespace string
		secret    string
		problem   string
	}{
		{"accounts are not required", false, "", "team", "other", ""},
		{"the account can read it", true, "common", "team", "mine", ""},
		{"the account cannot", true, "common", "team", "other", "ServiceAccount team/common may not get Secret team/other"},
		{"there is no account", true, "", "team", "mine", "which it lacks. Start it with --default-service-account"},
		{"there is no account, and no Secret is read", true, "", "team", "", ""},
		{"a repository of the cluster", true, "", "", "other", ""},
		{"a type that is never read", false, "", "team", "token", "Secret team/token is not read: it is for others"},
		{"a type that is never read, for the cluster", false, "", "", "token", "is not read: it is for others"},
	} {
		p := &Pipeline{Get: get, Guard: sources.NewGuard(review, get), Account: test.account, AccountRequired: test.required}
		repository := corev1alpha1.ScopeOf(test.namespace).NewPackageRepository()
		repository.SetNamespace(test.namespace)
		spec := &corev1alpha1.RepositoryHTTPSource{URL: "https://a.example/"}
		if test.secret != "" {
			spec.SecretRef = &corev1alpha1.LocalSecretReference{Name: test.secret}
		}
		repository.RepositorySpec().Source.HTTP = spec
		source, _, err := p.sourceOf(t.Context(), job{repository: repository, namespace: "team"})
		if (err == nil) != (test.problem == "") || err != nil && !strings.Contains(err.Error(), test.problem) {
			t.Errorf("%s: %v", test.reason, err)
		}
		require.Equal(t, (test.problem == "" && test.secret != ""), len(source.Secrets[test.secret]) > 0, fmt.Sprintf("%s: read", test.reason))
		require.Equal(t, test.namespace, source.Namespace, fmt.Sprintf("%s: of the namespace", test.reason))
	}
}

// carvelPackage is a version that can be offered.
const carvelPackage = `apiVersion: data.packaging.carvel.dev/v1alpha1
kind: Package
metadata: {name: shop.example.com.1.0.0}
spec:
  refName: shop.example.com
  version: 1.0.0
  template: {spec: {fetch: [{imgpkgBundle: {image: "registry.example.com/shop:1.0.0"}}]}}
`

// No status has a hash of values in a Secret: the digest covers the published offers.
func TestDigestOfFilesFromSecrets(t *testing.T) {
	t.Parallel()
	p := &Pipeline{Fetcher: fetch.New(fetch.Options{})}
	read := func(secret string) *result {
		source := fetch.Source{
			Spec: corev1alpha1.RepositorySource{Inline: &corev1alpha1.RepositoryInlineSource{
				Files:     map[string]string{"a.yaml": carvelPackage},
				FilesFrom: []corev1alpha1.RepositoryFilesSource{{SecretRef: &corev1alpha1.LocalSecretReference{Name: "s"}}},
			}},
			Secrets: map[string]map[string][]byte{"s": {"b.yaml": []byte(secret)}},
		}
		r, err := p.fetchAndRead(t.Context(), source, job{repository: &corev1alpha1.PackageRepository{}})
		require.NoError(t, err)
		return r
	}
	one, other := read("apiVersion: correct-horse-1\nkind: correct-horse-2\n"), read("apiVersion: battery\nkind: staple\n")
	if one.digest == "" || one.digest != other.digest || one.revision != one.digest {
		t.Errorf("%q and %q", one.digest, other.digest)
	}
	if len(one.content.problems) != 1 || strings.Contains(strings.Join(one.content.problems, ""), "correct-horse") {
		t.Errorf("%q", one.content.problems)
	}
}

// If only a digest of a repository is cached, its files are read when it is fetched, and when the
// digest changes.
func TestReducedRepositoryIsRead(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.restart(t.Context())
	inline := func(text string) *corev1alpha1.PackageRepository {
		r := &corev1alpha1.PackageRepository{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "own"}}
		r.Spec.Source.Inline = &corev1alpha1.RepositoryInlineSource{Files: map[string]string{"a.yaml": text}}
		return r
	}
	require.NoError(t, w.server.Create(t.Context(), inline("one")))
	reduced, other := inline("one"), inline("two")
	mutationcache.Reduce(reduced)
	mutationcache.Reduce(other)
	got, err := w.whole(t.Context(), job{repository: reduced})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a.yaml": "one"}, got.repository.RepositorySpec().Source.Inline.Files)
	if sourceHash(reduced.Spec.Source) == sourceHash(other.Spec.Source) {
		t.Error("other files look the same")
	}
	if mutationcache.Reduced(inline("one")) || mutationcache.Bulk(reduced) > 200 {
		t.Error("a whole one is reduced, or a reduced one is large")
	}
}

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
