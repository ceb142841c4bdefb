package tenants_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// Images, repositories and kubeconfigs of a namespace cannot make the manager connect to private,
// loopback or metadata addresses, in any notation.
func TestPrivateAddresses(t *testing.T) {
	t.Parallel()
	u := newTenant(t, env, "")
	var reached atomic.Int32
	count := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) })
	inner := httptest.NewUnstartedServer(count)
	listener, err := net.Listen("tcp", ":0")
	require.NoError(t, err)
	require.NoError(t, inner.Listener.Close())
	inner.Listener = listener
	inner.Start()
	t.Cleanup(inner.Close)
	port := listener.Addr().(*net.TCPAddr).Port
	private := privateAddress(t)
	hosts := []string{
		private, "10.255.255.1", "[::ffff:" + private + "]", "[64:ff9b::aff:1]", "[2002:aff:1::1]", "[fd00::1]", "100.64.0.1",
		"127.0.0.1", "localhost", "[::1]", "[64:ff9b:1::7f00:1]", "0.0.0.0", "169.254.169.254", "[2002:a9fe:a9fe::1]", "[fd00:ec2::254]",
	}
	var waits []func()
	for i, host := range hosts {
		at := fmt.Sprintf("%s:%d", host, port)
		for kind, source := range map[string]corev1alpha1.RepositorySource{
			"http": {HTTP: &corev1alpha1.RepositoryHTTPSource{URL: "http://" + at + "/x.yaml"}},
			"git":  {Git: &corev1alpha1.RepositoryGitSource{URL: "http://" + at + "/x.git"}},
		} {
			name := fmt.Sprintf("%s-%d", kind, i)
			u.create(t, repositoryOf(u.namespace, name, source))
			waits = append(waits, func() {
				refusedWith(t, waitRepository(t, u.env, u.namespace, name, corev1alpha1.ReasonFetchFailed).Message, "which sources may not be fetched from", "--allow-")
			})
		}
	}
	for i, host := range []string{private, "10.255.255.1", "[fd00::1]", "127.0.0.1"} {
		at := fmt.Sprintf("%s:%d", host, port)
		image := fmt.Sprintf("image-%d", i)
		u.create(t, harness.Package(u.namespace, image, at+"/x:v1"))
		waits = append(waits, func() {
			refusedWith(t, env.WaitCondition(t, u.namespace, image, corev1alpha1.ConditionUnpacked, "False").Message, "forbidden address", "--allow-")
		})
		if host == "127.0.0.1" {
			continue // the targets of other tests have loopback addresses
		}
		target := fmt.Sprintf("target-%d", i)
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: target},
			Data:       map[string][]byte{"value": []byte(kubeconfigFor("https://" + at))},
		}
		pkg := harness.Package(u.namespace, target, "registry.example/x:v1")
		pkg.Spec.TargetRef = &corev1alpha1.TargetReference{KubeconfigSecretRef: corev1alpha1.KubeconfigSecretReference{Name: target}}
		u.create(t, secret, pkg)
		waits = append(waits, func() {
			refusedWith(t, env.WaitCondition(t, u.namespace, target, corev1alpha1.ConditionTargetConnected, "False").Message, "--allow-")
		})
	}
	for _, wait := range waits {
		wait()
	}
	if n := reached.Load(); n > 0 {
		t.Errorf("the server on this machine got %d requests", n)
	}
}

func refusedWith(t *testing.T, message string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(message, part) {
			t.Errorf("there is no %q in %q", part, message)
		}
	}
}

// privateAddress returns a private address of this machine, or an unused one if it has none.
func privateAddress(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	require.NoError(t, err)
	for _, a := range addresses {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil && prefix.Addr().Is4() && prefix.Addr().IsPrivate() {
			return prefix.Addr().String()
		}
	}
	return "10.255.255.2"
}

func kubeconfigFor(server string) string {
	return fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
"clusters": [{"name": "a", "cluster": {"server": %q}}], "users": [{"name": "a", "user": {"token": %q}}]}`, server, base64.StdEncoding.EncodeToString([]byte("token")))
}

func repositoryOf(namespace, name string, source corev1alpha1.RepositorySource) *corev1alpha1.PackageRepository {
	return &corev1alpha1.PackageRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1alpha1.PackageRepositorySpec{Source: source},
	}
}

// waitRepository waits until the condition Ready of a PackageRepository has a reason.
func waitRepository(t *testing.T, e *harness.Env, namespace, name, reason string) metav1.Condition {
	t.Helper()
	var ready metav1.Condition
	harness.Eventually(t, harness.Patience, "the repository "+name, func(ctx context.Context) error {
		repository := &corev1alpha1.PackageRepository{}
		if err := e.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, repository); err != nil {
			return err
		}
		found := meta.FindStatusCondition(repository.Status.Conditions, corev1alpha1.ConditionReady)
		if found == nil || found.Reason != reason {
			return fmt.Errorf("it is %+v", repository.Status.Conditions)
		}
		ready = *found
		return nil
	})
	return ready
}
