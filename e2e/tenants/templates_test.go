package tenants_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

func configMap(namespace, name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{"value": value}}
}

// templateOf renders a ConfigMap of its name from ConfigMaps.
func templateOf(namespace, name, text string, sources ...string) *corev1alpha1.ObjectTemplate {
	tmpl := &corev1alpha1.ObjectTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	tmpl.Spec.Template = text + "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: of-" + name + "}\n"
	for i, source := range sources {
		tmpl.Spec.Sources = append(tmpl.Spec.Sources, corev1alpha1.ObjectTemplateSource{
			APIVersion: "v1", Kind: "ConfigMap", Name: source,
			Items: []corev1alpha1.ObjectTemplateSourceItem{{Key: ".metadata.name", Destination: fmt.Sprintf(".n%d", i)}},
		})
	}
	return tmpl
}

func (u *tenant) awaitTemplate(t *testing.T, name string, status metav1.ConditionStatus, reason string, texts ...string) {
	t.Helper()
	tmpl := &corev1alpha1.ObjectTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: name}}
	harness.Eventually(t, harness.Patience, "the template "+name, func(ctx context.Context) error {
		if err := u.Get(ctx, client.ObjectKeyFromObject(tmpl), tmpl); err != nil {
			return err
		}
		return harness.HasCondition(tmpl, corev1alpha1.ConditionReady, status, reason, texts...)
	})
}

// slow is text of a template that takes long.
const slow = "{{- $l := until 900 }}{{ range $l }}{{ range $l }}{{ end }}{{ end -}}\n"

// Templates that use up their time again and again do not occupy all workers. A template of
// another namespace becomes ready before templates that were created earlier had their turn,
// regardless of the speed of the machine.
func TestTemplateWorkers(t *testing.T) {
	t.Parallel()
	u, other := newTenant(t, env, "", "lockstep-author"), newTenant(t, env, "-other", "lockstep-author")
	u.create(t, configMap(u.namespace, "source", "0"))
	var all []client.Object
	for i := range 40 {
		all = append(all, templateOf(u.namespace, fmt.Sprintf("slow-%d", i), slow, "source"))
	}
	// On a busy machine, one creation at a time can take as long as one turn, so that none waits.
	inParallel(t, all, func(obj client.Object) error { return client.IgnoreAlreadyExists(u.Create(t.Context(), obj)) })
	edit, stop := context.WithCancel(t.Context())
	edited := make(chan struct{})
	go func() {
		defer close(edited)
		for i := 1; edit.Err() == nil; i++ {
			_ = u.Update(edit, configMap(u.namespace, "source", fmt.Sprint(i)))
			select {
			case <-edit.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	defer func() {
		stop()
		<-edited
	}()
	other.create(t, configMap(other.namespace, "source", "0"), templateOf(other.namespace, "quick", "", "source"))
	other.awaitTemplate(t, "quick", metav1.ConditionTrue, corev1alpha1.ReasonRendered)
	earlier := &corev1alpha1.ObjectTemplateList{}
	require.NoError(t, u.List(t.Context(), earlier, client.InNamespace(u.namespace)))
	if !slices.ContainsFunc(earlier.Items, func(o corev1alpha1.ObjectTemplate) bool { return len(o.Status.Conditions) == 0 }) {
		t.Error("all earlier templates had their turn first")
	}
	stop() // otherwise the templates slow down their own deletion, which has a minute
	u.removeTemplates(t)
}

// removeTemplates deletes the tenant's templates. On a busy machine, one request might time out
// before it has deleted all of them.
func (u *tenant) removeTemplates(t *testing.T) {
	t.Helper()
	harness.Eventually(t, harness.Patience, "the templates to be deleted", func(ctx context.Context) error {
		return u.DeleteAllOf(ctx, &corev1alpha1.ObjectTemplate{}, client.InNamespace(u.namespace))
	})
}

// The size of the templates' sources is limited per namespace. A template that exceeds it reports
// that, and other templates continue.
func TestTemplateMemory(t *testing.T) {
	t.Parallel()
	u, other := newTenant(t, env, "", "lockstep-author"), newTenant(t, env, "-other", "lockstep-author")
	var names []string
	for i := range 45 {
		names = append(names, fmt.Sprintf("large-%d", i))
		u.create(t, configMap(u.namespace, names[i], strings.Repeat("x", 1000<<10)))
	}
	u.create(t, templateOf(u.namespace, "greedy", "", names...))
	u.awaitTemplate(t, "greedy", metav1.ConditionFalse, corev1alpha1.ReasonSourceError, "of the manager's memory, more than its share", "GOMEMLIMIT")
	other.create(t, configMap(other.namespace, "source", "0"), templateOf(other.namespace, "modest", "", "source"))
	other.awaitTemplate(t, "modest", metav1.ConditionTrue, corev1alpha1.ReasonRendered)
	u.removeTemplates(t)
}
