package objecttemplates_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/require"
)

// Sources are read when they are created, also again after a deletion. Until then, the object stays
// unchanged.
func TestSources(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	tmpl := template(t, ns, "t", rendering("out", `.config.host }}:{{ dig "extra" "none" .config }}:{{ .config.first`),
		source("v1", "ConfigMap", "required", "data.host=.host", `jq:.data.list | split(",") | .[0]=.first`),
		optional(source("v1", "ConfigMap", "extra", "{.data['a\\.b']}=.extra")))
	awaitCondition(t, tmpl, invalid, metav1.ConditionTrue, corev1alpha1.ReasonSourceError, "ConfigMap "+ns+"/required does not exist")
	absent(t, named(ns, "out"))

	required := configMap(t, ns, "required", map[string]string{"host": "db", "list": "x,y"})
	awaitValue(t, ns, "out", "db:none:x")
	awaitReady(t, tmpl)
	if ref := tmpl.Status.ControllerOf; ref == nil || *ref != (corev1alpha1.ControlledObjectReference{Kind: "ConfigMap", Version: "v1", Namespace: ns, Name: "out"}) {
		t.Errorf("controllerOf is %+v", ref)
	}
	extra := configMap(t, ns, "extra", map[string]string{"a.b": "more"})
	awaitValue(t, ns, "out", "db:more:x")
	require.NoError(t, env.Client.Delete(t.Context(), extra))
	awaitValue(t, ns, "out", "db:none:x")

	require.NoError(t, env.Client.Delete(t.Context(), required))
	awaitCondition(t, tmpl, invalid, metav1.ConditionTrue, corev1alpha1.ReasonSourceError, "does not exist")
	awaitValue(t, ns, "out", "db:none:x")
	configMap(t, ns, "required", map[string]string{"host": "other", "list": "z"})
	awaitValue(t, ns, "out", "other:none:z")
	awaitReady(t, tmpl)

	// The sources have no labels or finalizers of the manager.
	require.NoError(t, env.Client.Get(t.Context(), keyOf(required), required))
	if len(required.Labels)+len(required.Annotations)+len(required.Finalizers) > 0 {
		t.Errorf("the source was changed: %+v", required.ObjectMeta)
	}
}

// Values of a Secret go into Secrets, and are in no message.
func TestSecrets(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	const value = "correct horse battery staple"
	secret(t, ns, "password", "value", value)
	from := source("v1", "Secret", "password", "data.value=.password")

	tmpl := template(t, ns, "t", rendering("out", ".config.password | b64dec"), from)
	awaitCondition(t, tmpl, invalid, metav1.ConditionTrue, corev1alpha1.ReasonSourceError, "Render a Secret")
	absent(t, named(ns, "out"))

	change(t, tmpl, func(o *corev1alpha1.ObjectTemplate) {
		o.Spec.Template = "{{ fail (b64dec .config.password) }}"
	})
	awaitCondition(t, tmpl, invalid, metav1.ConditionTrue, corev1alpha1.ReasonTemplateError, "line 1: at <fail")
	noSecretIn(t, tmpl, value)

	change(t, tmpl, func(o *corev1alpha1.ObjectTemplate) {
		o.Spec.Template = "apiVersion: v1\nkind: Secret\nmetadata: {name: out}\nstringData: {url: 'db:{{ .config.password | b64dec }}'}\n"
	})
	awaitReady(t, tmpl)
	out := &corev1.Secret{}
	require.NoError(t, env.Client.Get(t.Context(), keyOf(named(ns, "out")), out))
	if string(out.Data["url"]) != "db:"+value {
		t.Errorf("the Secret has %q", out.Data["url"])
	}
	noSecretIn(t, tmpl, value)

	change(t, tmpl, func(o *corev1alpha1.ObjectTemplate) {
		o.Spec.Template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: known, annotations: {package-operator.run/expose-secret-values: 'true'}}\ndata: {value: '{{ .config.password | b64dec }}'}\n"
	})
	awaitValue(t, ns, "known", value)
	awaitGone(t, out)
}

// An event of a source only enqueues the templates that use it. Each of them renders once, with one
// write.
func TestOneSourceOfMany(t *testing.T) {
	t.Parallel()
	templates, sources := 20, 4
	if deep {
		templates, sources = 500, 100
	}
	fanOut(t, templates, sources)
}
