package tenants_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// The metrics contain the names of packages in all namespaces, so they require TLS, and the token
// of an account with the right to get them. A manager that waits for the Lease serves them, too.
func TestMetricsTakeAToken(t *testing.T) {
	t.Parallel()
	u := newTenant(t, env, "")
	address := harness.Address(t)
	// It must not lead along with the manager of all tests, which takes no Lease.
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1alpha1.DefaultNamespace, Name: corev1alpha1.LeaderElectionLease}}
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = ptr.To("another"), ptr.To[int32](3600)
	lease.Spec.RenewTime = ptr.To(metav1.NowMicro())
	env.Create(t, lease)
	env.StartManager(t, "--metrics-secure", "--metrics-bind-address", address)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} // its own certificate
	status := func(ctx context.Context, scheme, token string) int {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+address+"/metrics", nil)
		require.NoError(t, err)
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Logf("%s: %v", scheme, err)
			return 0
		}
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode
	}
	reader := harness.Account(t, env.Client, u.namespace, "prometheus", "lockstep-metrics-reader")
	harness.Eventually(t, harness.Patience, "Prometheus to get metrics", func(ctx context.Context) error {
		if got := status(ctx, "https", reader); got != http.StatusOK {
			return fmt.Errorf("status %d", got)
		}
		return nil
	})
	tenant := harness.Token(t, env.Client, u.namespace, "tenant")
	for what, tc := range map[string]struct {
		scheme, token string
		want          int
	}{
		"no token":       {"https", "", http.StatusUnauthorized},
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
