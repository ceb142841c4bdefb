package tenants_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// owned returns an ObjectDeployment of one ConfigMap with owner references.
func owned(namespace, name string, owners ...metav1.OwnerReference) *corev1alpha1.ObjectDeployment {
	dep := &corev1alpha1.ObjectDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, OwnerReferences: owners}}
	dep.Spec.Selector.MatchLabels = map[string]string{"app": name}
	dep.Spec.Template.Metadata.Labels = map[string]string{"app": name}
	object := corev1alpha1.ObjectSetObject{}
	object.Object.Raw = fmt.Appendf(nil, `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": %q}, "data": {"value": "v1"}}`, name)
	dep.Spec.Template.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{{Name: "one", Objects: []corev1alpha1.ObjectSetObject{object}}}
	return dep
}

// watches returns how many watches there are of single objects of a resource, or of one namespace.
func watches(ctx context.Context, resource string) (int, error) {
	c, err := rest.HTTPClientFor(env.Config())
	if err != nil {
		return 0, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, env.Server()+"/metrics", http.NoBody)
	if err != nil {
		return 0, err
	}
	answer, err := c.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	total := 0
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		line := lines.Text()
		if strings.HasPrefix(line, "apiserver_longrunning_requests{") && strings.Contains(line, fmt.Sprintf("resource=%q", resource)) && !strings.Contains(line, `scope="cluster"`) {
			var n float64
			if _, err := fmt.Sscan(line[strings.LastIndex(line, " ")+1:], &n); err != nil {
				return 0, err
			}
			total += int(n)
		}
	}
	return total, nil
}

// All owners of a kind share one watch, regardless of how many owners a deployment names and how
// often they change. The watch ends when no owner is named.
func TestOwnerBomb(t *testing.T) {
	t.Parallel()
	const kind, resource = "PodTemplate", "podtemplates" // there are no other watches by name
	u := newTenant(t, env, "", "lockstep-author")
	existing := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: "owner"}}
	u.create(t, existing)
	refs := func(round int) []metav1.OwnerReference {
		// An existing owner keeps the garbage collector from deleting the deployment.
		all := []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: existing.Name, UID: existing.UID}}
		for i := range 500 {
			name := fmt.Sprintf("p%d-%d", round, i)
			all = append(all, metav1.OwnerReference{APIVersion: "v1", Kind: kind, Name: name, UID: types.UID(u.namespace + name)})
		}
		return all
	}
	dep := owned(u.namespace, "bomb", refs(0)...)
	u.create(t, dep)
	for round := range 4 {
		harness.Edit(t, env, dep, func(dep *corev1alpha1.ObjectDeployment) { dep.OwnerReferences = refs(round) })
	}
	env.Settle(t, u.namespace)
	harness.Eventually(t, harness.Patience, "one watch of all owners", func(ctx context.Context) error {
		n, err := watches(ctx, resource)
		if err == nil && n != 1 { // an ended one is counted until the API server has noticed
			err = fmt.Errorf("there are %d at a time", n)
		}
		return err
	})
	harness.Edit(t, env, dep, func(dep *corev1alpha1.ObjectDeployment) { dep.OwnerReferences = nil })
	harness.Eventually(t, harness.Patience, "the watches to end", func(ctx context.Context) error {
		n, err := watches(ctx, resource)
		if err == nil && n > 0 {
			err = fmt.Errorf("%d are left", n)
		}
		return err
	})
}

// An owner whose API does not answer is reported, and does not block anything.
func TestAggregated503(t *testing.T) {
	t.Parallel()
	e := harness.Lend(t)
	e.StartManager(t, "--pace=0.1")
	u := newTenant(t, e, "", "lockstep-author")
	const group = "away.example.com"
	service := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1." + group},
		"spec": map[string]any{
			"group": group, "version": "v1", "groupPriorityMinimum": int64(1000), "versionPriority": int64(10), "insecureSkipTLSVerify": true,
			"service": map[string]any{"namespace": u.namespace, "name": "nobody"},
		},
	}}
	e.Create(t, service)
	t.Cleanup(func() { _ = e.Client.Delete(context.Background(), service) })
	dep := owned(u.namespace, "app", metav1.OwnerReference{APIVersion: group + "/v1", Kind: "Thing", Name: "owner", UID: "thing"})
	u.create(t, dep)
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: "app"}}
	shows := func(value string) {
		t.Helper()
		harness.Await(t, e, harness.Patience, cm, "to be "+value, func(cm *corev1.ConfigMap) error {
			if cm.Data["value"] != value {
				return fmt.Errorf("it is %v", cm.Data)
			}
			return nil
		})
	}
	shows("v1")
	require.NoError(t, u.Patch(t.Context(), cm, client.RawPatch(types.MergePatchType, []byte(`{"data": {"value": "drift"}}`))))
	shows("v1")
	harness.Edit(t, e, dep, func(dep *corev1alpha1.ObjectDeployment) {
		raw := &dep.Spec.Template.Spec.Phases[0].Objects[0].Object
		raw.Raw = []byte(strings.Replace(string(raw.Raw), `"v1"}`, `"v2"}`, 1))
	})
	shows("v2")
	// If the kind was unknown when the deployment was reconciled, it is looked up again in a
	// minute.
	harness.Await(t, e, patience+30*time.Second, dep, "to name the owner", func(dep *corev1alpha1.ObjectDeployment) error {
		if !slices.ContainsFunc(dep.Status.Conditions, func(c metav1.Condition) bool {
			return c.Type == corev1alpha1.ConditionReady && strings.Contains(c.Message, "Its owner Thing owner cannot be watched")
		}) {
			return fmt.Errorf("it says %+v", dep.Status.Conditions)
		}
		return nil
	})
}
