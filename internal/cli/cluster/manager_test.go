package cluster

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/require"
)

// TestSilence: the age of the manager's Lease is measured by the clock of the API server.
func TestSilence(t *testing.T) {
	t.Parallel()
	for reason, test := range map[string]struct {
		ahead, age time.Duration
		silent     bool
	}{
		"equal clocks":                         {0, time.Second, false},
		"equal clocks, and no manager":         {0, time.Minute, true},
		"a clock that is slow by an hour":      {time.Hour, time.Second, false},
		"a clock that is slow, and no manager": {time.Hour, time.Minute, true},
		"a clock that is fast by an hour":      {-time.Hour, time.Second, false},
		"a clock that is fast, and no manager": {-time.Hour, time.Minute, true},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			now := time.Now().Add(test.ahead)
			lease := coordinationv1.Lease{
				TypeMeta:   metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
				ObjectMeta: metav1.ObjectMeta{Namespace: corev1alpha1.DefaultNamespace, Name: corev1alpha1.LeaderElectionLease},
			}
			lease.Spec.RenewTime = &metav1.MicroTime{Time: now.Add(-test.age)}
			w.Header().Set("Date", now.UTC().Format(http.TimeFormat))
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(lease)
		}))
		defer server.Close()
		flags := genericclioptions.NewConfigFlags(false)
		flags.APIServer = &server.URL
		c, err := Connect(flags, io.Discard)
		require.NoError(t, err)
		silence := c.Silence(t.Context())
		if silent := silence > 0; silent != test.silent || silent && (silence-test.age).Abs() > 5*time.Second {
			t.Errorf("%s: no manager for %s", reason, silence)
		}
	}
}
