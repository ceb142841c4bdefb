package rollout_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
