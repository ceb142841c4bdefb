package repositories

import (
	"context"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/fetch"
	"lockstep.run/lockstep/internal/inputs/sources"
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
		if has := len(source.Secrets[test.secret]) > 0; has != (test.problem == "" && test.secret != "") {
			t.Errorf("%s: read %v", test.reason, has)
		}
		if source.Namespace != test.namespace {
			t.Errorf("%s: of the namespace %q", test.reason, source.Namespace)
		}
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
