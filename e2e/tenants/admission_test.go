package tenants_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// installed makes the tenant install a Package shop, for which the manager installs shop-db.
func (u *tenant) installed(t *testing.T) *corev1alpha1.Package {
	t.Helper()
	repository := &corev1alpha1.PackageRepository{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: "stable"}}
	repository.Spec.Paused, repository.Spec.Source.Inline = true, &corev1alpha1.RepositoryInlineSource{}
	u.create(t, repository)
	for name, dependencies := range map[string]string{"shop": "[{name: db, package: {name: db}}]", "db": "[]"} {
		available := &corev1alpha1.AvailablePackage{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: name}}
		available.Spec.PackageName = name
		version := corev1alpha1.AvailableVersion{Version: "1.0.0", Repository: "stable", Files: harness.Files{
			"manifest.yaml": harness.Manifest(name, []string{"p"}, "  version: 1.0.0\n  availabilityProbes: []\n  dependencies: "+dependencies+"\n"),
			"object.yaml":   harness.ConfigMap(name, "p", "v1"),
		}}
		if name == "shop" {
			version.Dependencies = []corev1alpha1.Dependency{{Name: "db", Package: &corev1alpha1.DependencyPackage{Name: "db"}}}
		}
		available.Spec.Versions = []corev1alpha1.AvailableVersion{version}
		u.env.Create(t, available)
	}
	pkg := harness.Package(u.namespace, "shop", "")
	pkg.Spec.PackageRef = &corev1alpha1.PackageReference{Name: "shop"}
	u.create(t, pkg)
	u.env.WaitCondition(t, u.namespace, "shop", corev1alpha1.ConditionReady, "True")
	return harness.Package(u.namespace, "shop-db", "")
}

// A package that was installed as a dependency keeps its label, spec, owners and finalizers against
// all attempts of its user, until it is adopted. Then the manager removes the label.
func TestAdmissionBypass(t *testing.T) {
	t.Parallel()
	u := newTenant(t, env, "")
	db := u.installed(t)
	require.NoError(t, u.Get(t.Context(), client.ObjectKeyFromObject(db), db))
	for what, patch := range map[string]string{
		"the label":          `{"metadata":{"labels":{"package-operator.run/generated":null}}}`,
		"its value":          `{"metadata":{"labels":{"package-operator.run/generated":"no"}}}`,
		"label and adoption": `{"metadata":{"labels":{"package-operator.run/generated":null},"annotations":{"package-operator.run/adopt":"true"}}}`,
		"the spec":           `{"spec":{"packageRef":{"version":">=1"}}}`,
		"pausing":            `{"spec":{"paused":true}}`,
		"label and spec":     `{"metadata":{"labels":{"package-operator.run/generated":null}},"spec":{"packageRef":{"version":">=1"}}}`,
		"the finalizers":     `{"metadata":{"finalizers":null}}`,
		"an owner":           fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":%q}]}}`, db.UID),
		"its dependents":     `{"metadata":{"labels":{"required-by.package-operator.run/shop":null}}}`,
	} {
		err := u.Patch(t.Context(), db.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(patch)))
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), corev1alpha1.AdoptAnnotation) {
			t.Errorf("%s: %v", what, err)
		}
	}
	require.NoError(t, u.Patch(t.Context(), db, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"package-operator.run/adopt":"true"}}}`))))
	harness.Await(t, env, harness.Patience, db, "to be the tenant's", func(p *corev1alpha1.Package) error {
		if p.Labels[corev1alpha1.GeneratedLabel] != "" {
			return fmt.Errorf("labels %v", p.Labels)
		}
		return nil
	})
	require.NoError(t, u.Patch(t.Context(), db, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"packageRef":{"version":">=1"}}}`))))
}

// Only the manager can create a package that claims to be a dependency of others. A user cannot
// create one by hand, nor through a package, a deployment or a template, whose objects the
// manager writes.
func TestGeneratedForge(t *testing.T) {
	t.Parallel()
	u := newTenant(t, env, "", "lockstep-author")
	db := u.installed(t)
	label := map[string]string{corev1alpha1.GeneratedLabel: "true"}
	forged := harness.Package(u.namespace, "forged", "example.com/x:v1")
	forged.Labels = label
	if err := u.Create(t.Context(), forged); !apierrors.IsForbidden(err) {
		t.Errorf("it was created: %v", err)
	}
	if err := u.Create(t.Context(), forged, client.DryRunAll); !apierrors.IsForbidden(err) {
		t.Errorf("a dry run: %v", err)
	}
	err := u.Patch(t.Context(), harness.Package(u.namespace, "shop", ""), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"package-operator.run/generated":"true"}}}`)))
	if !apierrors.IsForbidden(err) {
		t.Errorf("the label was put on: %v", err)
	}

	object := func(name string) string {
		return "apiVersion: package-operator.run/v1alpha1\nkind: Package\nmetadata:\n  name: " + name +
			"\n  labels: {package-operator.run/generated: 'true'}\n  annotations: {package-operator.run/phase: p}\nspec: {image: example.com/x:v1, paused: true}\n"
	}
	image := env.Push(t, "generated-forge:v1", harness.Files{
		"manifest.yaml": harness.Manifest("forge", []string{"p"}, "  version: 1.0.0\n"), "object.yaml": object("by-package"),
	})
	u.create(t, harness.Package(u.namespace, "forge", image))
	env.WaitCondition(t, u.namespace, "forge", corev1alpha1.ConditionInvalid, "True")

	dep := &corev1alpha1.ObjectDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: "forge-by-hand"}}
	dep.Spec.Selector.MatchLabels = map[string]string{"app": "forge"}
	dep.Spec.Template.Metadata.Labels = dep.Spec.Selector.MatchLabels
	dep.Spec.Template.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{{Name: "p", Objects: []corev1alpha1.ObjectSetObject{{Object: runtime.RawExtension{Raw: []byte(
		`{"apiVersion":"package-operator.run/v1alpha1","kind":"Package","metadata":{"name":"by-deployment","labels":{"package-operator.run/generated":"true"}},"spec":{"image":"example.com/x:v1"}}`,
	)}}}}}
	u.create(t, dep)
	harness.Await(t, env, harness.Patience, dep, "to be refused", func(d *corev1alpha1.ObjectDeployment) error {
		return harness.HasCondition(d, corev1alpha1.ConditionReady, metav1.ConditionFalse, "", corev1alpha1.GeneratedLabel)
	})

	template := &corev1alpha1.ObjectTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: "forge"}}
	template.Spec.Template = object("by-template")
	template.Spec.Sources = []corev1alpha1.ObjectTemplateSource{{
		APIVersion: "package-operator.run/v1alpha1", Kind: "Package", Name: "shop",
		Items: []corev1alpha1.ObjectTemplateSourceItem{{Key: ".metadata.name", Destination: ".shop"}},
	}}
	u.create(t, template)
	harness.Await(t, env, harness.Patience, template, "to be refused", func(o *corev1alpha1.ObjectTemplate) error {
		return harness.HasCondition(o, corev1alpha1.ConditionReady, metav1.ConditionFalse, "", corev1alpha1.GeneratedLabel)
	})

	list := &corev1alpha1.PackageList{}
	require.NoError(t, env.Client.List(context.Background(), list, client.InNamespace(u.namespace), client.MatchingLabels(label)))
	if len(list.Items) != 1 || list.Items[0].Name != db.Name {
		t.Errorf("the generated packages are %v", list.Items)
	}
}
