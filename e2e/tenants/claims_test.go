package tenants_test

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

const whoAmI = "/api/v1/namespaces/kube-system"

func says(w http.ResponseWriter, status int, format string, args ...any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, format, args...)
}

func namesItself(w http.ResponseWriter, uid string) {
	says(w, http.StatusOK, `{"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "kube-system", "uid": %q}}`, uid)
}

// newCluster returns a server that forwards to the API server of the tests, as another cluster for
// kubeconfigs.
func newCluster(t *testing.T, uid string) *httptest.Server {
	t.Helper()
	config := rest.AnonymousClientConfig(env.Config())
	transport, err := rest.TransportFor(config)
	require.NoError(t, err)
	host, err := url.Parse(config.Host)
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(host)
	proxy.Transport, proxy.FlushInterval = transport, -1
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == whoAmI {
			namesItself(w, uid)
			return
		}
		proxy.ServeHTTP(w, r)
	})
}

// serve starts a server of a target. Requests that hang end with the test.
func serve(t *testing.T, handle http.HandlerFunc) *httptest.Server {
	t.Helper()
	ctx, end := context.WithCancel(context.Background())
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		handle(w, r.WithContext(request))
	}))
	server.Config.ErrorLog = nil
	t.Cleanup(func() {
		end()
		server.CloseClientConnections()
		server.Close()
	})
	return server
}

// account returns the token of a new account with a ClusterRole in a namespace; an empty
// namespace means all.
func account(t *testing.T, namespace, name, role, in string) string {
	t.Helper()
	if in == "" {
		return harness.Account(t, env.Client, namespace, name, role)
	}
	env.Create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
	env.Create(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
	})
	return harness.Token(t, env.Client, namespace, name)
}

// installInto creates a Package as the tenant, and the Secret with the kubeconfig of a target and
// the namespace of its objects.
func (u *tenant) installInto(t *testing.T, server *httptest.Server, token, namespace, name, image string) *corev1alpha1.Package {
	t.Helper()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	kubeconfig := harness.Kubeconfig(server.URL, ca, fmt.Sprintf("token: %q", token))
	u.create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: name}, StringData: map[string]string{"value": kubeconfig}})
	pkg := harness.Package(u.namespace, name, image)
	pkg.Spec.TargetRef = &corev1alpha1.TargetReference{KubeconfigSecretRef: corev1alpha1.KubeconfigSecretReference{Name: name}, Namespace: namespace}
	u.create(t, pkg)
	return pkg
}

// deploymentSays waits until a condition of an ObjectDeployment has a text.
func deploymentSays(t *testing.T, namespace, name, text string) {
	t.Helper()
	dep := &corev1alpha1.ObjectDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	harness.Eventually(t, harness.Patience, fmt.Sprintf("%s/%s to say %q", namespace, name, text), func(ctx context.Context) error {
		if err := env.Client.Get(ctx, client.ObjectKeyFromObject(dep), dep); err != nil {
			return err
		}
		for _, c := range dep.Status.Conditions {
			if strings.Contains(c.Message, text) {
				return nil
			}
		}
		return fmt.Errorf("it says %+v", dep.Status.Conditions)
	})
}

// An account that cannot read the objects of a target's namespace does not claim them, so that a
// tenant with the right can install them.
func TestTargetClaimUnauthorized(t *testing.T) {
	t.Parallel()
	evil, victim := newTenant(t, env, "-evil"), newTenant(t, env, "-victim")
	theirs := namespaceOf(t, "-there")
	env.Namespace(t, theirs)
	target := newCluster(t, "unauthorized")
	image := env.Push(t, "target-claim-unauthorized:v1", harness.Phased("app", 1, 1))

	evil.installInto(t, target, account(t, evil.namespace, "edge", "edit", evil.namespace), theirs, "x", image)
	deploymentSays(t, evil.namespace, "x", "may not get configmaps in the target")
	victim.installInto(t, target, account(t, victim.namespace, "edge", "cluster-admin", ""), theirs, "app", image)
	env.WaitAvailableWithin(t, harness.Patience, victim.namespace, "app")
}

// A server that reports the UID of another tenant's target claims no objects of that target.
func TestTargetUIDSpoof(t *testing.T) {
	t.Parallel()
	evil, victim := newTenant(t, env, "-evil"), newTenant(t, env, "-victim")
	theirs := namespaceOf(t, "-there")
	env.Namespace(t, theirs)
	image := env.Push(t, "target-uid-spoof:v1", harness.Phased("app", 1, 1))

	evil.installInto(t, serve(t, func(w http.ResponseWriter, r *http.Request) { emptyCluster(w, r, "spoofed") }), "any", theirs, "x", image)
	harness.Eventually(t, harness.Patience, "the claim of the spoofing package", func(ctx context.Context) error {
		var sets corev1alpha1.ObjectSetList
		if err := env.Client.List(ctx, &sets, client.InNamespace(evil.namespace)); err != nil {
			return err
		}
		for i := range sets.Items {
			if harness.HasCondition(&sets.Items[i], corev1alpha1.ConditionClaimed, metav1.ConditionTrue, corev1alpha1.ReasonClaimed) == nil {
				return nil
			}
		}
		return fmt.Errorf("%d sets without one", len(sets.Items))
	})
	victim.installInto(t, newCluster(t, "spoofed"), account(t, victim.namespace, "edge", "cluster-admin", ""), theirs, "app", image)
	env.WaitAvailableWithin(t, harness.Patience, victim.namespace, "app")
}

// emptyCluster answers as an API server that has no ConfigMaps and refuses to create any.
func emptyCluster(w http.ResponseWriter, r *http.Request, uid string) {
	switch {
	case r.URL.Path == whoAmI:
		namesItself(w, uid)
	case r.Method != http.MethodGet:
		says(w, http.StatusForbidden, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "message": "configmaps is forbidden", "code": 403}`)
	case r.URL.Path == "/version":
		says(w, http.StatusOK, `{"major": "1", "minor": "34", "gitVersion": "v1.34.0"}`)
	case r.URL.Path == "/api":
		says(w, http.StatusOK, `{"kind": "APIVersions", "versions": ["v1"]}`)
	case r.URL.Path == "/apis":
		says(w, http.StatusOK, `{"kind": "APIGroupList", "apiVersion": "v1", "groups": []}`)
	case r.URL.Path == "/api/v1":
		says(w, http.StatusOK, `{"kind": "APIResourceList", "groupVersion": "v1", "resources": [`+
			`{"name": "configmaps", "kind": "ConfigMap", "namespaced": true, "verbs": ["get", "list", "watch", "create", "patch", "delete"]},`+
			`{"name": "namespaces", "kind": "Namespace", "namespaced": false, "verbs": ["get", "list", "watch"]}]}`)
	case strings.HasSuffix(r.URL.Path, "/configmaps") && r.URL.Query().Get("watch") != "":
		says(w, http.StatusOK, `{"type": "BOOKMARK", "object": {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"resourceVersion": "1", `+
			`"annotations": {"k8s.io/initial-events-end": "true"}}}}`+"\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	case strings.HasSuffix(r.URL.Path, "/configmaps"):
		says(w, http.StatusOK, `{"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []}`)
	default:
		says(w, http.StatusNotFound, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404, "details": {"kind": "configmaps", "name": %q}}`,
			path.Base(r.URL.Path))
	}
}
