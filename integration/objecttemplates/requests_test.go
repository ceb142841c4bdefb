package objecttemplates_test

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	corev1 "k8s.io/api/core/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

var deep = harness.Deep()

func keyOf(obj client.Object) client.ObjectKey { return client.ObjectKeyFromObject(obj) }

func noSecretIn(t *testing.T, tmpl *corev1alpha1.ObjectTemplate, value string) {
	t.Helper()
	text := fmt.Sprintf("%+v", tmpl.Status)
	events := &corev1.EventList{}
	require.NoError(t, env.Client.List(t.Context(), events, client.InNamespace(tmpl.Namespace)))
	for i := range events.Items {
		text += events.Items[i].Message
	}
	if strings.Contains(text, value) {
		t.Errorf("the value of the Secret is in %s", text)
	}
}

// renders returns how often the manager rendered the templates of a namespace.
func renders(t *testing.T, ns string) (sum int) {
	t.Helper()
	for _, found := range regexp.MustCompile(`lockstep_objecttemplate_renders_total\{[^}]*pko_namespace="`+ns+`"\} (\d+)`).FindAllStringSubmatch(harness.Metrics(t, metrics), -1) {
		n, err := strconv.Atoi(found[1])
		require.NoError(t, err)
		sum += n
	}
	return sum
}

// fanOut changes one source of many templates, and counts the requests.
func fanOut(t *testing.T, templates, sources int) {
	t.Helper()
	ns := env.TestNamespace(t)
	var all []*corev1.ConfigMap
	for i := range sources {
		all = append(all, configMap(t, ns, fmt.Sprintf("source-%d", i), map[string]string{"v": "0"}))
	}
	for i := range templates {
		template(t, ns, fmt.Sprintf("t-%d", i), rendering(fmt.Sprintf("out-%d", i), ".config.v"), source("v1", "ConfigMap", fmt.Sprintf("source-%d", i%sources), "data.v=.v"))
	}
	for i := range templates {
		awaitValue(t, ns, fmt.Sprintf("out-%d", i), "0")
		awaitReady(t, &corev1alpha1.ObjectTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: fmt.Sprintf("t-%d", i)}})
	}
	env.Journal(t).Rest(t, ns)
	before := renders(t, ns)
	journal := env.Journal(t)
	change(t, all[1], func(o *corev1.ConfigMap) { o.Data["v"] = "1" })
	for i := 1; i < templates; i += sources {
		awaitValue(t, ns, fmt.Sprintf("out-%d", i), "1")
	}
	requests := journal.Rest(t, ns)
	if got, want := len(requests), templates/sources; got != want || harness.Tally(requests)["patch configmaps"] != want {
		t.Errorf("%d requests, want the write of each of %d dependants:%s", got, want, harness.Lines(requests))
	}
	if got, want := renders(t, ns)-before, templates/sources; got != want {
		t.Errorf("%d renderings, want one of each of %d dependants", got, want)
	}

	// A change of a value that no template reads causes no requests.
	journal = env.Journal(t)
	change(t, all[1], func(o *corev1.ConfigMap) { o.Data["unread"] = "1" })
	if requests := journal.Rest(t, ns); len(requests) > 0 {
		t.Errorf("a value that is not read costs:%s", harness.Lines(requests))
	}
}

// If the kind of a source or of the object is not served, the template continues as soon as it
// is. That also works after the kind was deleted and created again.
func TestKindArrives(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	tmpl := template(t, ns, "t", rendering("out", ".config.size"), source("templates.test/v1", "Gauge", "g", "spec.size=.size"))
	awaitCondition(t, tmpl, invalid, metav1.ConditionTrue, corev1alpha1.ReasonSourceError, "the API server does not serve v1/Gauge.templates.test")
	writing := template(t, ns, "writing", "{apiVersion: templates.test/v1, kind: Gauge, metadata: {name: made}, spec: {size: 7}}")
	awaitCondition(t, writing, corev1alpha1.ConditionReady, metav1.ConditionFalse, corev1alpha1.ReasonPreflightError, "does not serve")
	definition := harness.Definition("templates.test", "Gauge", "gauges", "v1", "Namespaced")
	create := func(text string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte(text), &u.Object))
		harness.Eventually(t, patience, "the API of "+u.GetKind(), func(ctx context.Context) error { return env.Client.Create(ctx, u) })
		return u
	}
	const gauge = "{apiVersion: templates.test/v1, kind: Gauge, metadata: {name: g, namespace: %s}, spec: {size: %d}}"
	crd := create(definition)
	create(fmt.Sprintf(gauge, ns, 3))
	awaitValue(t, ns, "out", "3")
	awaitReady(t, tmpl)
	awaitReady(t, writing)

	require.NoError(t, env.Client.Delete(t.Context(), crd))
	env.WaitGone(t, patience, crd)
	awaitCondition(t, tmpl, invalid, metav1.ConditionTrue, corev1alpha1.ReasonSourceError, "does not serve")
	awaitCondition(t, writing, corev1alpha1.ConditionReady, metav1.ConditionFalse, corev1alpha1.ReasonPreflightError, "does not serve")
	create(definition)
	create(fmt.Sprintf(gauge, ns, 4))
	awaitValue(t, ns, "out", "4")
	awaitReady(t, tmpl)
	awaitReady(t, writing)
}
