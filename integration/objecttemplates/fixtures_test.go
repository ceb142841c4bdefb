package objecttemplates_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

var patience = harness.Patience

const invalid = corev1alpha1.ConditionObjectTemplateInvalid

// source names an object and its values, each as key=destination.
func source(apiVersion, kind, name string, items ...string) corev1alpha1.ObjectTemplateSource {
	s := corev1alpha1.ObjectTemplateSource{APIVersion: apiVersion, Kind: kind, Name: name, Items: []corev1alpha1.ObjectTemplateSourceItem{}}
	for _, text := range items {
		at := strings.LastIndex(text, "=")
		s.Items = append(s.Items, corev1alpha1.ObjectTemplateSourceItem{Key: text[:at], Destination: text[at+1:]})
	}
	return s
}

func optional(s corev1alpha1.ObjectTemplateSource) corev1alpha1.ObjectTemplateSource {
	s.Optional = true
	return s
}

// template creates an ObjectTemplate.
func template(t *testing.T, ns, name, text string, sources ...corev1alpha1.ObjectTemplateSource) *corev1alpha1.ObjectTemplate {
	t.Helper()
	tmpl := &corev1alpha1.ObjectTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	tmpl.Spec.Template, tmpl.Spec.Sources = text, append([]corev1alpha1.ObjectTemplateSource{}, sources...)
	require.NoError(t, env.Client.Create(t.Context(), tmpl))
	return tmpl
}

// rendering is a template of a ConfigMap with one value.
func rendering(name, expression string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata:\n  value: '{{ %s }}'\n", name, expression)
}

func configMap(t *testing.T, ns, name string, data map[string]string) *corev1.ConfigMap {
	t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Data: data}
	require.NoError(t, env.Client.Create(t.Context(), cm))
	return cm
}

func secret(t *testing.T, ns, name, key, value string) *corev1.Secret {
	t.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, StringData: map[string]string{key: value}}
	require.NoError(t, env.Client.Create(t.Context(), s))
	return s
}

// change changes an object.
func change[T client.Object](t *testing.T, obj T, do func(T)) {
	t.Helper()
	harness.Edit(t, env, obj, do)
}

// awaitValue waits until a ConfigMap has a value.
func awaitValue(t *testing.T, ns, name, want string) *corev1.ConfigMap {
	t.Helper()
	cm := &corev1.ConfigMap{}
	harness.Eventually(t, patience, fmt.Sprintf("%s/%s to be %q", ns, name, want), func(ctx context.Context) error {
		cm = &corev1.ConfigMap{}
		if err := env.Client.Get(ctx, types.NamespacedName{Namespace: ns, Name: name}, cm); err != nil {
			return err
		}
		if cm.Data["value"] != want {
			return fmt.Errorf("it is %q", cm.Data["value"])
		}
		return nil
	})
	return cm
}

// awaitGone waits until an object is deleted.
func awaitGone(t *testing.T, obj client.Object) {
	t.Helper()
	env.WaitGone(t, patience, obj)
}

// awaitCondition waits until a template reports a condition of its generation with all of the texts
// in its message.
func awaitCondition(t *testing.T, tmpl corev1alpha1.GenericObjectTemplate, typ string, status metav1.ConditionStatus, reason string, texts ...string) {
	t.Helper()
	harness.Eventually(t, patience, fmt.Sprintf("%s to report %s=%s/%s", tmpl.GetName(), typ, status, reason), func(ctx context.Context) error {
		if err := env.Client.Get(ctx, client.ObjectKeyFromObject(tmpl), tmpl); err != nil {
			return err
		}
		return harness.HasCondition(tmpl, typ, status, reason, texts...)
	})
}

func awaitReady(t *testing.T, tmpl corev1alpha1.GenericObjectTemplate) {
	t.Helper()
	awaitCondition(t, tmpl, corev1alpha1.ConditionReady, metav1.ConditionTrue, corev1alpha1.ReasonRendered)
	if meta.FindStatusCondition(*tmpl.StatusConditions(), invalid) != nil {
		t.Errorf("%s is ready and invalid: %+v", tmpl.GetName(), *tmpl.StatusConditions())
	}
}

// absent fails the test if an object exists.
func absent(t *testing.T, obj client.Object) {
	t.Helper()
	if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); !apierrors.IsNotFound(err) {
		t.Errorf("%s is there: %v", obj.GetName(), err)
	}
}

func named(ns, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
}

// eventually repeats check until it returns nil.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	harness.Eventually(t, patience, what, func(context.Context) error { return check() })
}

func differs(got, want string) error {
	if got != want {
		return fmt.Errorf("it is %q, want %q", got, want)
	}
	return nil
}
