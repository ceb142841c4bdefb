package tenants_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// slowWebhook answers requests of the manager about Packages of a namespace at the end of its test.
type slowWebhook struct {
	asked, let chan struct{}
	once       sync.Once
}

func (w *slowWebhook) ServeHTTP(answer http.ResponseWriter, r *http.Request) {
	review := &admissionv1.AdmissionReview{}
	if err := json.NewDecoder(r.Body).Decode(review); err != nil {
		http.Error(answer, "no review", http.StatusBadRequest)
		return
	}
	w.once.Do(func() { close(w.asked) })
	select {
	case <-w.let:
	case <-r.Context().Done():
	}
	review.Response, review.Request = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}, nil
	_ = json.NewEncoder(answer).Encode(review)
}

// slowDown registers a webhook for the manager's writes of Packages in a namespace. Its answer
// takes longer than the test.
func slowDown(t *testing.T, namespace string) *slowWebhook {
	t.Helper()
	w := &slowWebhook{asked: make(chan struct{}), let: make(chan struct{})}
	server := httptest.NewTLSServer(w)
	t.Cleanup(server.Close)
	config := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "slow.example.com",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL: ptr.To(server.URL), CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			AdmissionReviewVersions: []string{"v1"}, SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone),
			FailurePolicy: ptr.To(admissionregistrationv1.Ignore), TimeoutSeconds: ptr.To(int32(30)),
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}},
			MatchConditions: []admissionregistrationv1.MatchCondition{{
				Name: "manager", Expression: fmt.Sprintf("request.userInfo.username == %q", harness.ManagerUser()),
			}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{corev1alpha1.GroupName}, APIVersions: []string{"*"}, Resources: []string{"packages"}},
			}},
		}},
	}
	env.Create(t, config)
	t.Cleanup(func() { _ = env.Client.Delete(context.Background(), config) })
	return w
}

// others installs a ClusterPackage without dependencies and a Package with dependencies in another
// namespace, deletes the latter, and returns the longest of these times.
func others(t *testing.T, name string) time.Duration {
	t.Helper()
	ns := name + "-victim"
	env.Namespace(t, ns)
	env.Offer(t, "", name+"-free", harness.Release{Version: "1.0.0"})
	env.Offer(t, ns, "db", harness.Release{Version: "1.0.0"})
	env.Offer(t, ns, "app", harness.Release{Version: "1.0.0", Needs: []corev1alpha1.Dependency{harness.On("db", "db", "")}})
	longest, from := time.Duration(0), time.Now()
	lap := func() { longest, from = max(longest, time.Since(from)), time.Now() }
	install(t, wish("", name+"-free", name+"-free", ""))
	lap()
	app := wish(ns, "app", "app", "", deleting)
	install(t, app)
	lap()
	require.NoError(t, env.Client.Delete(t.Context(), app))
	env.WaitGone(t, patience, app)
	lap()
	return longest
}

// While a webhook on the packages installed for a tenant's takes its time, no other
// tenant waits for it.
func TestWebhookSlow(t *testing.T) {
	t.Parallel()
	u := newTenant(t, env, "")
	quiet := others(t, u.namespace+"-quiet")
	w := slowDown(t, u.namespace)
	env.Offer(t, u.namespace, "db", harness.Release{Version: "1.0.0"})
	env.Offer(t, u.namespace, "x", harness.Release{Version: "1.0.0", Needs: []corev1alpha1.Dependency{harness.On("one", "db", "1.0.0"), harness.On("two", "db", ">=1")}})
	for k := range 24 {
		u.create(t, wish(u.namespace, fmt.Sprintf("x-%02d", k), "x", ""))
	}
	select {
	case <-w.asked:
	case <-time.After(patience):
		t.Fatal("the webhook was not asked")
	}
	if took := others(t, u.namespace); took > 15*time.Second+3*quiet {
		t.Errorf("others waited %s for the webhook, and %s without", took, quiet)
	}
	close(w.let)
}

// While a tenant's packages have dependencies that are hard to resolve, no other tenant
// waits for that.
func TestDepsGraph(t *testing.T) {
	if !harness.Deep() {
		t.Skip("takes the processors of other tests for half a minute: a sweep of ./task test:deep")
	}
	t.Parallel()
	u := newTenant(t, env, "")
	quiet := others(t, u.namespace+"-quiet")
	u.graphs(t, 20)
	if took := others(t, u.namespace); took > 15*time.Second+3*quiet {
		t.Errorf("others waited %s, and %s without", took, quiet)
	}
	pkg := harness.Package(u.namespace, "x-00", "")
	harness.Await(t, env, patience, pkg, "is answered", func(p *corev1alpha1.Package) error {
		return harness.HasCondition(p, corev1alpha1.ConditionDependenciesReady, metav1.ConditionFalse, "")
	})
}
