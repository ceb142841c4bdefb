package rollout_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"lockstep.run/lockstep/e2e/harness"
)

const establishedProbes = `  availabilityProbes:
  - selector:
      kind: {group: apps, kind: Deployment}
    probes:
    - condition: {type: Available, status: "True"}
  - selector:
      kind: {group: apiextensions.k8s.io, kind: CustomResourceDefinition}
    probes:
    - condition: {type: Established, status: "True"}
`

// shop is a package of one object in a phase called deploy.
func shop(object string) harness.Files {
	return harness.Files{"manifest.yaml": harness.Manifest("shop", []string{"deploy"}, establishedProbes), "object.yaml": object}
}

func web(image string) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata:
  name: shop
  annotations: {package-operator.run/phase: deploy}
spec:
  replicas: 1
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      containers:
      - {name: web, image: %q}
`, image)
}

func install(t *testing.T, namespace string, files harness.Files) {
	t.Helper()
	env := harness.Shared(t)
	env.Create(t, harness.Package(namespace, "shop", env.Push(t, namespace+":v1", files)))
}

func TestQuotaOfPods(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	env.Namespace(t, "quota")
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: "quota", Name: "small"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}},
	}
	env.Create(t, quota)
	// Admission enforces the status, not the spec.
	harness.Eventually(t, harness.Patience, "the quota to be in force", func(ctx context.Context) error {
		if err := env.Client.Get(ctx, client.ObjectKeyFromObject(quota), quota); err != nil {
			return err
		}
		if len(quota.Status.Hard) == 0 {
			return errors.New("its status is empty")
		}
		return nil
	})
	install(t, "quota", shop(web("registry.example.com/shop:v1")))
	awaitCause(t, "quota", "a quota of the namespace is exhausted", "exceeded quota: small", "kubectl -n quota describe resourcequota")
}

func TestWebhookThatRefuses(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	env.Namespace(t, "webhook")
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{Message: "a cost centre is missing"}}
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(server.Close)
	addWebhook(t, server, "webhook")
	install(t, "webhook", shop(service))
	awaitCause(t, "webhook", "the webhook costs.example.com refuses Service webhook/shop: a cost centre is missing")
}

// A webhook that cannot be called is distinguished from one that refuses.
func TestUnreachableWebhook(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	env.Namespace(t, "unreached")
	server := httptest.NewTLSServer(http.NotFoundHandler())
	addWebhook(t, server, "unreached")
	server.Close()
	install(t, "unreached", shop(service))
	awaitCause(t, "unreached", "the webhook costs.example.com cannot be called, so Service unreached/shop cannot be written", "connection refused", "delete its configuration")
}

func TestMissingNamespace(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	files := shop(strings.Replace(service, "name: shop", "name: shop\n  namespace: nowhere", 1))
	env.Create(t, harness.ClusterPackage("homeless", env.Push(t, "homeless:v1", files)))
	awaitCause(t, "homeless", "the namespace of Service nowhere/shop does not exist", "kubectl create namespace nowhere")
}

const service = `apiVersion: v1
kind: Service
metadata:
  name: shop
  annotations: {package-operator.run/phase: deploy}
spec:
  ports: [{port: 80}]
`

// addWebhook registers a server as the webhook for new Services of a namespace.
func addWebhook(t *testing.T, server *httptest.Server, namespace string) {
	t.Helper()
	env := harness.Shared(t)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	hook := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "costs-" + namespace},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "costs.example.com", AdmissionReviewVersions: []string{"v1"},
			ClientConfig:      admissionregistrationv1.WebhookClientConfig{URL: ptr.To(server.URL), CABundle: authority},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}},
			SideEffects:       ptr.To(admissionregistrationv1.SideEffectClassNone),
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{"CREATE"},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"services"}},
			}},
		}},
	}
	env.Create(t, hook)
	t.Cleanup(func() { _ = env.Client.Delete(context.WithoutCancel(t.Context()), hook) })
	harness.Eventually(t, harness.Patience, "the API server to call the webhook", func(ctx context.Context) error {
		probe := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "probe"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
		if err := env.Client.Create(ctx, probe, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "costs.example.com") {
			return fmt.Errorf("the answer to a Service is %w", err)
		}
		return nil
	})
}
