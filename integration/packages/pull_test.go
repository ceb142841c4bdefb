package packages_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// private is a registry that requires a password, one for each repository: its
// name.
var private = sync.OnceValue(func() string {
	inner := counting().next
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		repository := strings.Split(strings.TrimPrefix(r.URL.Path, "/v2/"), "/")[0]
		if password == "" || repository != "" && password != repository {
			w.Header().Set("WWW-Authenticate", `Basic realm="private"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	return strings.TrimPrefix(server.URL, "http://")
})

// pushPrivate pushes a package that only a password reads.
func pushPrivate(t *testing.T, repository string) string {
	t.Helper()
	image := private() + "/" + repository + ":v1"
	ref, err := name.ParseReference(image, name.Insecure)
	require.NoError(t, err)
	require.NoError(t, remote.Write(ref, harness.Image(t, harness.Phased("shop", 1, 1)), remote.WithContext(t.Context()),
		remote.WithAuth(authn.FromConfig(authn.AuthConfig{Username: "any", Password: repository}))))
	return image
}

func pullSecret(t *testing.T, ns, name, password string) *corev1.Secret {
	t.Helper()
	auths := map[string]any{"auths": map[string]any{private(): map[string]string{"username": "any", "password": password}}}
	raw, err := json.Marshal(auths)
	require.NoError(t, err)
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: raw},
	}
}

// A missing pull secret is named. When it is created, and when a wrong one is corrected, the pull
// is repeated at once. At rest no request is sent.
func TestPullSecrets(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	pkg := harness.Package(ns, "shop", pushPrivate(t, "pullsecrets"))
	pkg.Spec.ImagePullSecrets = []corev1alpha1.LocalSecretReference{{Name: "login"}}
	env.Create(t, pkg)
	await(t, named(ns), "to name the missing secret", func(p *corev1alpha1.Package) error {
		return harness.HasCondition(p, corev1alpha1.ConditionUnpacked, metav1.ConditionFalse, corev1alpha1.ReasonImagePullBackOff, "unauthorized", "Secret "+ns+"/login does not exist")
	})
	env.Create(t, pullSecret(t, ns, "login", "wrong-password"))
	await(t, named(ns), "to use the secret", func(p *corev1alpha1.Package) error {
		c := conditionOf(p.Status.Conditions, corev1alpha1.ConditionUnpacked)
		if c == nil || strings.Contains(c.Message, "does not exist") || strings.Contains(c.Message, "wrong-password") {
			return fmt.Errorf("%+v", c)
		}
		return nil
	})
	corrected := pullSecret(t, ns, "login", "pullsecrets")
	harness.Edit(t, env, &corev1.Secret{ObjectMeta: corrected.ObjectMeta}, func(s *corev1.Secret) { s.Data = corrected.Data })
	env.WaitAvailable(t, ns, "shop")
	env.Settle(t, ns)
	env.Journal(t).Silent(t, ns)
}

// A Package with an interval finds out that its tag has moved; until then, and
// while it has not, the API server is not asked for anything.
func TestInterval(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	image := push(t, 1, 1, "v1")
	pkg := harness.Package(ns, "shop", image)
	pkg.Spec.Interval = &metav1.Duration{Duration: time.Minute}
	env.Create(t, pkg)
	env.WaitAvailable(t, ns, "shop")
	digest := shop(t, ns).Status.Resolved.Digest
	env.Settle(t, ns)
	env.Journal(t).Silent(t, ns)
	require.NoError(t, retag(t, image, harness.Phased("shop", 1, 3)))
	harness.Eventually(t, patience, "the moved tag to be rolled out", func(ctx context.Context) error {
		p := shop(t, ns)
		if p.Status.Resolved.Digest == digest || p.Status.Revision != 2 || len(p.Status.Phases) != 1 || p.Status.Phases[0].Ready != 3 {
			return fmt.Errorf("%+v", p.Status)
		}
		return nil
	})
}
