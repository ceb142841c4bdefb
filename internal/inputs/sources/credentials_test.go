package sources

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/test/require"
)

func TestCredentials(t *testing.T) {
	t.Parallel()
	s := newStage()
	w := NewWatches(s.listen, nil)
	go func() { _ = w.Start(t.Context()) }()
	secret := func(name string) Ref { return Ref{Kind: KindSecret, Namespace: "ns", Name: name} }
	login := func(user string) *Object {
		return &Object{Type: "kubernetes.io/dockerconfigjson", Data: map[string][]byte{
			".dockerconfigjson": fmt.Appendf(nil, `{"auths":{"registry.test":{"username":%q,"password":"p"}}}`, user),
		}}
	}
	account := Ref{Kind: KindServiceAccount, Namespace: "ns", Name: "manager"}
	found := map[Ref]*Object{
		account:          {PullSecrets: []Ref{secret("own")}},
		secret("own"):    login("manager"),
		secret("team"):   login("team"),
		secret("old"):    {Type: "kubernetes.io/dockercfg", Data: map[string][]byte{".dockercfg": []byte(`{"registry.test":{"username":"old","password":"p"}}`)}},
		secret("opaque"): {Type: "Opaque", Data: map[string][]byte{".dockerconfigjson": []byte("{}")}},
		secret("empty"):  {Type: "kubernetes.io/dockerconfigjson"},
		secret("broken"): {Type: "kubernetes.io/dockercfg", Data: map[string][]byte{".dockercfg": []byte("geheim")}},
	}
	reads := map[Ref]int{}
	c := NewCredentials(func(_ context.Context, ref Ref) (*Object, error) {
		reads[ref]++
		return found[ref], nil
	}, w, account, NewGuard(reviewer("system:serviceaccount:ns:app may get ns/team").review, there))
	c.Follow()
	<-s.begun
	s.of("serviceaccounts ns/manager").Listed([]metav1.Object{object("1")})

	reader, ownOnly, ofPolicy := objects.Account{}, false, []Ref(nil)
	user := func(refs ...Ref) (string, []string) {
		t.Helper()
		keys, missing, err := c.Keychain(context.Background(), reader, refs, ofPolicy, ownOnly)
		require.NoError(t, err)
		repo, err := name.NewRepository("registry.test/x")
		require.NoError(t, err)
		auth, err := keys.Resolve(repo)
		require.NoError(t, err)
		config, err := authn.Authorization(context.Background(), auth)
		require.NoError(t, err)
		return config.Username, missing
	}
	if got, _ := user(); got != "manager" {
		t.Errorf("without secrets of its own a package is pulled as %q", got)
	}
	<-s.begun // the account's secret is watched as well
	s.of("secrets ns/own").Listed([]metav1.Object{object("1")})
	if got, missing := user(secret("team")); got != "team" || len(missing) > 0 {
		t.Errorf("pulled as %q, missing %v", got, missing)
	}
	if got, _ := user(secret("old")); got != "old" {
		t.Errorf("pulled as %q", got)
	}
	got, missing := user(secret("none"), secret("opaque"), secret("empty"), secret("broken"))
	if told := strings.Join(missing, "; "); got != "manager" || strings.Contains(told, "geheim") ||
		!strings.Contains(told, "ns/none does not exist") || !strings.Contains(told, "ns/opaque is neither of type") ||
		!strings.Contains(told, "ns/empty has no key") || !strings.Contains(told, "ns/broken cannot be read") {
		t.Errorf("pulled as %q, missing: %s", got, told)
	}
	// The account itself needs the right to read the secrets that the package names. The manager's
	// rights are not enough.
	reader = objects.Account{Namespace: "ns", Name: "app"}
	if got, missing := user(secret("team")); got != "team" || len(missing) > 0 {
		t.Errorf("pulled as %q, missing %v", got, missing)
	}
	if got, missing := user(secret("old")); got != "manager" || len(missing) != 1 || !strings.Contains(missing[0], "ServiceAccount ns/app may not get Secret ns/old") {
		t.Errorf("pulled as %q, missing %v", got, missing)
	}
	// The manager reads the secret of an ImageConfig for everyone, after the package's secrets.
	ofPolicy = PullSecret("ns", "old")
	if got, missing := user(); got != "old" || len(missing) > 0 {
		t.Errorf("pulled as %q, missing %v", got, missing)
	}
	if got, missing := user(secret("old")); got != "old" || len(missing) != 1 {
		t.Errorf("pulled as %q, and the account does not need the right to the Secrets of the package: %v", got, missing)
	}
	if got, _ := user(secret("team")); got != "team" {
		t.Errorf("pulled as %q", got)
	}
	ofPolicy = PullSecret("ns", "")
	reader = objects.Account{}
	// Other accounts do not get the manager's credentials unless they are shared.
	ownOnly = true
	if got, missing := user(); got != "" || len(missing) > 0 {
		t.Errorf("pulled as %q, missing %v", got, missing)
	}
	if got, _ := user(secret("team")); got != "team" {
		t.Errorf("pulled as %q", got)
	}
	ownOnly = false
	// An unchanged, watched source is not read again, and a credential is not kept after the pull.
	before := map[Ref]int{account: reads[account], secret("own"): reads[secret("own")], secret("team"): reads[secret("team")]}
	user(secret("team"))
	user(secret("team"))
	if reads[account] != before[account] || reads[secret("own")] != before[secret("own")] || reads[secret("team")] != before[secret("team")]+2 {
		t.Errorf("read %v, and before %v", reads, before)
	}
	found[secret("own")] = login("changed")
	s.of("secrets ns/own").Changed(object("2"))
	if got, _ := user(); got != "changed" {
		t.Errorf("pulled as %q", got)
	}
}

// A manager that can read neither its service account nor Secrets pulls without credentials, and
// names the unreadable objects.
func TestCredentialsThatMayNotBeRead(t *testing.T) {
	t.Parallel()
	account := Ref{Kind: KindServiceAccount, Namespace: "ns", Name: "manager"}
	refuse := func(_ context.Context, ref Ref) (*Object, error) {
		return nil, fmt.Errorf("read %s: %w", ref, apierrors.NewForbidden(schema.GroupResource{Resource: "any"}, ref.Name, errors.New("no right")))
	}
	c := NewCredentials(refuse, NewWatches(newStage().listen, nil), account, nil)
	keys, missing, err := c.Keychain(t.Context(), objects.Account{}, []Ref{{Kind: KindSecret, Namespace: "ns", Name: "team"}}, nil, false)
	if err != nil || keys == nil {
		t.Fatalf("Keychain = %v, %v", keys, err)
	}

	told := strings.Join(missing, "; ")
	if !strings.Contains(told, "no right to read ServiceAccount ns/manager") || !strings.Contains(told, "no right to read Secret ns/team") {
		t.Errorf("missing: %s", told)
	}
}

func TestReference(t *testing.T) {
	t.Parallel()
	const image, digest = "registry.test/shop:v1", "sha256:0123456789012345678901234567890123456789012345678901234567890123"
	const pinned = "registry.test/shop@" + digest
	resolved := &corev1alpha1.ResolvedPackage{Image: image, Digest: digest}
	for name, tc := range map[string]struct {
		image    string
		resolved *corev1alpha1.ResolvedPackage
		policy   corev1alpha1.ImagePullPolicy
		changed  bool
		want     string
	}{
		"a tag keeps its digest":                 {image, resolved, "", false, pinned},
		"until the spec changes":                 {image, resolved, "", true, image},
		"or after any change":                    {image, resolved, corev1alpha1.ImagePullPolicyIfNotPresent, true, pinned},
		"without the registry":                   {image, resolved, corev1alpha1.ImagePullPolicyNever, true, pinned},
		"it is followed if the policy is Follow": {image, resolved, corev1alpha1.ImagePullPolicyAlways, false, image},
		"never unpacked":                         {image, nil, corev1alpha1.ImagePullPolicyIfNotPresent, false, image},
		"another image":                          {image, &corev1alpha1.ResolvedPackage{Image: "x", Digest: digest}, "", false, image},
		"no digest":                              {image, &corev1alpha1.ResolvedPackage{Image: image}, "", false, image},
		"by digest":                              {pinned, &corev1alpha1.ResolvedPackage{Image: pinned, Digest: digest}, "", false, pinned},
		"no reference":                           {"::", &corev1alpha1.ResolvedPackage{Image: "::", Digest: digest}, "", false, "::"},
	} {
		pkg := &corev1alpha1.Package{}
		pkg.Spec.Image, pkg.Spec.ImagePullPolicy, pkg.Status.Resolved = tc.image, tc.policy, tc.resolved
		require.Equal(t, tc.want, Reference(pkg, pkg.Spec.Image, tc.changed), name)
	}
}
