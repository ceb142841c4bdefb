package tenants_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

// The number of watches for sources is limited, regardless of how many sources the templates of a
// namespace name. A source is only watched while it is named.
func TestTemplateSources(t *testing.T) {
	t.Parallel()
	const kind, resource, of = "Service", "services", 40 // there are no other watches of single Services
	u := newTenant(t, env, "", "lockstep-author")
	service := func(i int, host string) *corev1.Service {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: fmt.Sprintf("s-%d", i)},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: host},
		}
	}
	for n := range 3 {
		tmpl := templateOf(u.namespace, fmt.Sprintf("t-%d", n), "")
		tmpl.Spec.Template += "data: {host: {{ dig \"n39\" \"none\" .config }}}\n"
		for i := range of {
			tmpl.Spec.Sources = append(tmpl.Spec.Sources, corev1alpha1.ObjectTemplateSource{
				APIVersion: "v1", Kind: kind, Name: fmt.Sprintf("s-%d", n*of+i), Optional: true,
				Items: []corev1alpha1.ObjectTemplateSourceItem{{Key: ".spec.externalName", Destination: fmt.Sprintf(".n%d", i)}},
			})
		}
		u.create(t, tmpl)
	}
	most := 0
	count := func(ctx context.Context) (int, error) {
		n, err := watches(ctx, resource)
		most = max(most, n)
		return n, err
	}
	shows := func(n int, host string) {
		t.Helper()
		cm := configMap(u.namespace, fmt.Sprintf("of-t-%d", n), "")
		harness.Await(t, env, patience, cm, "the host "+host, func(cm *corev1.ConfigMap) error {
			if open, err := count(t.Context()); err != nil || open > limits.SourceWatches+1 {
				// An ended one is counted until the API server has noticed.
				return errors.Join(err, fmt.Errorf("%d watches of sources at a time, want %d at most", open, limits.SourceWatches+1))
			}
			if cm.Data["host"] != host {
				return fmt.Errorf("it is %v", cm.Data)
			}
			return nil
		})
	}
	for n := range 3 {
		shows(n, "none")
	}
	for n := range 3 {
		last := service(n*of+of-1, "a.example.com")
		u.create(t, last)
		shows(n, "a.example.com")
		last.Spec.ExternalName = "b.example.com"
		require.NoError(t, u.Update(t.Context(), last))
		shows(n, "b.example.com")
		require.NoError(t, u.Delete(t.Context(), last))
		shows(n, "none")
	}
	if most == 0 {
		t.Error("no watch of a source was seen")
	}
	u.removeTemplates(t)
	harness.Eventually(t, patience, "the watches to end", func(ctx context.Context) error {
		n, err := count(ctx)
		if err == nil && n > 0 {
			err = fmt.Errorf("%d are left", n)
		}
		return err
	})
}
