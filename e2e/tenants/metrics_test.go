package tenants_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"lockstep.run/lockstep/e2e/harness"
)

// The metrics name everybody's packages: they take TLS, and a token of an account that may get them. A manager that waits for
// the Lease serves them, too.
func TestMetricsTakeAToken(t *testing.T) {
	t.Parallel()
	u := newTenant(t, env, "")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	address := listener.Addr().String()
	must(t, listener.Close())
	env.StartManager(t, "--metrics-secure", "--metrics-bind-address", address)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // its own certificate
	status := func(ctx context.Context, scheme, token string) int {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+address+"/metrics", nil)
		must(t, err)
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Logf("%s: %v", scheme, err)
			return 0
		}
		must(t, resp.Body.Close())
		return resp.StatusCode
	}
	prometheus := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: "prometheus"}}
	env.Create(t, prometheus)
	reader := tokenOf(t, env.Client, prometheus)
	env.Create(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: u.namespace}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "lockstep-metrics-reader"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: u.namespace, Name: prometheus.Name}},
	})
	harness.Eventually(t, harness.Patience, "Prometheus to get metrics", func(ctx context.Context) error {
		if got := status(ctx, "https", reader); got != http.StatusOK {
			return fmt.Errorf("status %d", got)
		}
		return nil
	})
	tenant := tokenOf(t, env.Client, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: "tenant"}})
	for what, tc := range map[string]struct {
		scheme, token string
		want          int
	}{
		"nobody":         {"https", "", http.StatusUnauthorized},
		"a wrong token":  {"https", "x.y.z", http.StatusInternalServerError}, // as the API server answers the review with an error
		"the tenant":     {"https", tenant, http.StatusForbidden},
		"plain HTTP":     {"http", "", http.StatusBadRequest},
		"HTTP, a reader": {"http", reader, http.StatusBadRequest},
	} {
		if got := status(t.Context(), tc.scheme, tc.token); got != tc.want {
			t.Errorf("%s: status %d, want %d", what, got, tc.want)
		}
	}
}
