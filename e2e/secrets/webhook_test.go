package secrets_test

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/require"
)

// gossip is a webhook that repeats each Secret in all parts of its answer: message, reason,
// causes, warnings.
type gossip struct {
	server *httptest.Server
	// allows means that it refuses nothing and only warns.
	allows atomic.Bool
}

// listen registers the webhook for the Secrets of packages.
func (l *lives) listen(t *testing.T) *gossip {
	t.Helper()
	g := &gossip{}
	g.server = httptest.NewTLSServer(g)
	t.Cleanup(g.server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: g.server.Certificate().Raw})
	require.NoError(t, l.env.Client.Create(t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "gossip"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:                    "gossip.example.com",
			ClientConfig:            admissionregistrationv1.WebhookClientConfig{URL: ptr.To(g.server.URL), CABundle: authority},
			AdmissionReviewVersions: []string{"v1"}, SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone),
			FailurePolicy: ptr.To(admissionregistrationv1.Fail),
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"secrets"}},
			}},
			MatchConditions: []admissionregistrationv1.MatchCondition{{
				Name: "of-packages", Expression: `object.metadata.name == "credentials" || object.type == "` + corev1alpha1.SecretSliceType + `"`,
			}},
		}},
	}))
	return g
}

// ServeHTTP answers a review.
func (g *gossip) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	review := &admissionv1.AdmissionReview{}
	secret := &corev1.Secret{}
	if err := json.NewDecoder(r.Body).Decode(review); err != nil || json.Unmarshal(review.Request.Object.Raw, secret) != nil {
		http.Error(w, "no review", http.StatusBadRequest)
		return
	}
	everything := string(review.Request.Object.Raw)
	for _, value := range secret.Data {
		everything += " " + string(value)
	}
	review.Response = &admissionv1.AdmissionResponse{
		UID: review.Request.UID, Allowed: g.allows.Load() || secret.Type == corev1alpha1.SecretSliceType,
		Warnings: []string{everything},
		Result: &metav1.Status{
			Code: http.StatusTeapot, Message: everything, Reason: metav1.StatusReason(everything),
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Field: everything, Message: everything}}},
		},
	}
	review.Request = nil
	_ = json.NewEncoder(w).Encode(review)
}
