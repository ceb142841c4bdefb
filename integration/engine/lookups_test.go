package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// A revision with an object of an API whose server does not answer rolls out the phases before that
// object, because one of them can mend the server.
func TestAPIThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	group := ns + ".example.com"
	env.Create(t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1." + group},
		"spec": map[string]any{
			"group": group, "version": "v1", "groupPriorityMinimum": int64(1), "versionPriority": int64(1),
			"service": map[string]any{"namespace": ns, "name": "server"}, "insecureSkipTLSVerify": true,
		},
	}})
	dep := install(t, deployment(ns, phase("server", configMap("server", "broken"))))
	change(t, dep, func(d *corev1alpha1.ObjectDeployment) {
		thing := raw(fmt.Sprintf(`{"apiVersion":"%s/v1","kind":"Thing","metadata":{"name":"first"}}`, group))
		d.Spec.Template.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{phase("server", configMap("server", "mended")), phase("things", thing)}
	})
	awaitValue(t, ns, "server", "mended")
	await(t, dep, "to name the API", func(d *corev1alpha1.ObjectDeployment) error {
		for _, c := range d.Status.Conditions {
			if strings.Contains(c.Message, "the API "+group+"/v1 is registered and not available") {
				return nil
			}
		}
		return fmt.Errorf("it says %+v", d.Status.Conditions)
	})
}

// An upgrade keeps a field that admission set at creation only, such as the default class of an
// Ingress, even if the API server refuses to create another object of the template.
func TestDefaultOfCreationStays(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	class := &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{
		Name: ns, Annotations: map[string]string{networkingv1.AnnotationIsDefaultIngressClass: "true"},
	}}
	class.Spec.Controller = "example.com/none"
	env.Create(t, class)
	ingress := func(more string) corev1alpha1.ObjectSetTemplatePhase {
		return phase("web", raw(`{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","metadata":{"name":"web"},"spec":{`+more+
			`"defaultBackend":{"service":{"name":"web","port":{"number":80}}}}}`))
	}
	dep := install(t, deployment(ns, ingress("")))
	key, web := types.NamespacedName{Namespace: ns, Name: "web"}, &networkingv1.Ingress{}
	require.NoError(t, env.Client.Get(t.Context(), key, web))
	require.Equal(t, ns, *web.Spec.IngressClassName)

	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "full"}}
	quota.Spec.Hard = corev1.ResourceList{"count/ingresses.networking.k8s.io": resource.MustParse("1")}
	env.Create(t, quota)
	quota.Status.Hard, quota.Status.Used = quota.Spec.Hard, quota.Spec.Hard
	require.NoError(t, env.Client.Status().Update(t.Context(), quota))
	harness.Eventually(t, patience, "the quota to be full", func(ctx context.Context) error {
		again := web.DeepCopy()
		again.ObjectMeta = metav1.ObjectMeta{Namespace: ns, Name: "again"}
		if err := env.Client.Create(ctx, again); err == nil {
			return fmt.Errorf("another Ingress was created")
		}
		return nil
	})

	change(t, dep, func(d *corev1alpha1.ObjectDeployment) {
		d.Spec.Template.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{ingress(`"tls":[{"hosts":["shop.example.com"]}],`)}
	})
	awaitRollout(t, dep)
	require.NoError(t, env.Client.Get(t.Context(), key, web))
	if len(web.Spec.TLS) != 1 || web.Spec.IngressClassName == nil || *web.Spec.IngressClassName != ns {
		t.Errorf("the upgrade left %+v", web.Spec)
	}
}
