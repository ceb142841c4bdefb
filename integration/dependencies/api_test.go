package dependencies_test

import (
	"context"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

func dropDefinition(t *testing.T, group string) {
	t.Helper()
	t.Cleanup(func() {
		_ = env.Client.Delete(context.Background(), &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "gadgets." + group}})
	})
}

// If a user creates a missing API later, it satisfies the packages that wait for it as soon as it
// has the fields. It no longer does after it was deleted.
func TestAPIArrives(t *testing.T) {
	t.Parallel()
	ns, group := env.TestNamespace(t), "arrives.example.com"
	dropDefinition(t, group)
	offer(t, ns, "shop", of("1.0.0", onAPI("gadgets", group+"/v1", "Gadget", "spec.kept", "spec.added")))
	env.Create(t, wish(ns, "shop", "shop", ""))
	awaitRefusal(t, ns, "shop", corev1alpha1.ReasonDependenciesUnsatisfied, "UnknownPackage", "Gadget")
	fields := map[string]apiextensionsv1.JSONSchemaProps{"kept": {Type: "string"}}
	definition := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "gadgets." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "Gadget", ListKind: "GadgetList", Plural: "gadgets", Singular: "gadget"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
				OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"spec": {Type: "object", Properties: fields},
				}},
			}}},
		},
	}
	env.Create(t, definition)
	awaitRefusal(t, ns, "shop", corev1alpha1.ReasonDependenciesUnsatisfied, "FieldsMissing", "spec.added")
	harness.Edit(t, env, definition, func(d *apiextensionsv1.CustomResourceDefinition) {
		d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["added"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	})
	awaitVersion(t, ns, "shop", "1.0.0")
	require.NoError(t, env.Client.Delete(t.Context(), definition))
	awaitRefusal(t, ns, "shop", corev1alpha1.ReasonDependenciesUnsatisfied, "UnknownPackage", "Gadget")
}
