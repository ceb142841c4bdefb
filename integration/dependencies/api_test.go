package dependencies_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// provider returns the release of a package with a CustomResourceDefinition of the group, with fields of its spec.
func provider(version, group string, fields ...string) release {
	properties := ""
	for _, field := range fields {
		properties += field + ": {type: string}, "
	}
	definition := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: gadgets." + group +
		"\n  annotations: {package-operator.run/phase: first}\nspec:\n  group: " + group +
		"\n  scope: Namespaced\n  names: {kind: Gadget, listKind: GadgetList, plural: gadgets, singular: gadget}\n  versions:\n  - name: v1\n    served: true\n    storage: true\n" +
		"    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {" + properties + "kept: {type: string}}}}}}\n"
	return release{Version: version, Files: map[string]string{"crd.yaml": definition}, Provides: []corev1alpha1.ProvidedAPI{{APIVersion: group + "/v1", Kind: "Gadget"}}}
}

func dropDefinition(t *testing.T, group string) {
	t.Helper()
	t.Cleanup(func() {
		_ = env.Client.Delete(context.Background(), &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "gadgets." + group}})
	})
}

// An API that a user brings later satisfies the packages that wait for it, once it has
// the fields, and no longer when it is removed.
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

// The only package that provides an API is installed for it, as a ClusterPackage since it has a CustomResourceDefinition; of two
// providers, an override chooses.
func TestProvidedAPI(t *testing.T) {
	t.Parallel()
	ns, group := env.TestNamespace(t), "provided.example.com"
	dropDefinition(t, group)
	name := strings.ReplaceAll(ns, "-", "")
	offerCluster(t, name+"one", provider("1.0.0", group, "size"))
	offerCluster(t, name+"two", provider("1.0.0", group, "size"))
	offerCluster(t, name+"shop", of("1.0.0", onAPI("gadgets", group+"/v1", "Gadget", "spec.size")))
	pkg := &corev1alpha1.ClusterPackage{ObjectMeta: metav1.ObjectMeta{Name: ns}}
	pkg.Spec.PackageRef = &corev1alpha1.PackageReference{Name: name + "shop"}
	env.Create(t, pkg)
	t.Cleanup(func() { _ = env.Client.Delete(context.Background(), pkg) })
	state := func(reason string, status metav1.ConditionStatus, texts ...string) func(*corev1alpha1.ClusterPackage) error {
		return func(p *corev1alpha1.ClusterPackage) error {
			return harness.HasCondition(&corev1alpha1.Package{ObjectMeta: p.ObjectMeta, Status: p.Status}, corev1alpha1.ConditionDependenciesReady, status, reason, texts...)
		}
	}
	await(t, pkg, "has two providers", state(corev1alpha1.ReasonDependenciesUnsatisfied, metav1.ConditionFalse, "AmbiguousProvider", name+"one", name+"two"))
	harness.Edit(t, env, pkg, func(p *corev1alpha1.ClusterPackage) {
		p.Spec.Dependencies = &corev1alpha1.PackageDependencies{Overrides: []corev1alpha1.DependencyOverride{{
			Name: "gadgets", Package: &corev1alpha1.DependencyPackageOverride{Name: name + "two"},
		}}}
	})
	await(t, pkg, "is ready", state(corev1alpha1.ReasonDependenciesReady, metav1.ConditionTrue))
	await(t, pkg, "has the provider", func(p *corev1alpha1.ClusterPackage) error {
		got := dependency(&corev1alpha1.Package{ObjectMeta: p.ObjectMeta, Status: p.Status}, "gadgets")
		if want := "ApiServed 1.0.0 ClusterPackage/" + ns + "-gadgets"; got != want {
			return fmt.Errorf("%s, want %s", got, want)
		}
		return nil
	})
	require.NoError(t, env.Client.Delete(t.Context(), pkg))
	env.WaitGone(t, patience, pkg)
	require.NoError(t, env.Client.Delete(t.Context(), &corev1alpha1.ClusterPackage{ObjectMeta: metav1.ObjectMeta{Name: ns + "-gadgets"}}))
}
