package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// A set with invalid names, which older CRDs accept, reports them on its own status, can be
// deleted, and does not block other sets after a restart. Not parallel: it restarts the
// shared manager.
func TestInvalidNames(t *testing.T) {
	ns := env.TestNamespace(t)
	named := func(name string, slices, secrets []string, objects ...corev1alpha1.ObjectSetObject) *corev1alpha1.ObjectSet {
		s := set(ns, name, 1, phase("one", objects...))
		s.Spec.Phases[0].Slices, s.Spec.Phases[0].SecretSlices = slices, secrets
		return s
	}
	for _, s := range []*corev1alpha1.ObjectSet{named("a", []string{"../../x"}, nil), named("b", nil, []string{"a/b"})} {
		if err := env.Client.Create(t.Context(), s); !apierrors.IsInvalid(err) {
			t.Errorf("the API server accepts a set with the names %v: %v", s.Spec.Phases[0], err)
		}
	}
	var many []string
	for i := range 40 {
		many = append(many, fmt.Sprintf("none-%d", i))
	}
	inSecret := func(text string) []string {
		secret := sealed(t, ns, raw(text))
		env.Create(t, secret)
		return []string{secret.GetName()}
	}
	rows := map[client.Object]struct{ reason, says string }{
		named("slices", []string{"../../x"}, nil, configMap("beside", "v1")): {corev1alpha1.ReasonSlicesMissing, `"../../x"`},
		named("secrets", nil, []string{"a/b"}):                               {corev1alpha1.ReasonSlicesMissing, `"a/b"`},
		named("many", many, nil):                                             {corev1alpha1.ReasonSlicesMissing, "maybe more"},
		named("cluster-scoped", nil, nil, raw(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"x","namespace":"`+ns+`"}}`)): {
			corev1alpha1.ReasonPreflightError, "must be namespace scoped"},
		named("unstored", nil, nil, raw(`{"apiVersion":"authorization.k8s.io/v1","kind":"LocalSubjectAccessReview","metadata":{"name":"x"},"spec":{}}`)): {
			corev1alpha1.ReasonPreflightError, "cannot list and watch"},
		named("upper-case", nil, nil, raw(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"Upper"}}`)): {
			corev1alpha1.ReasonPreflightError, "lowercase"},
		named("path", nil, inSecret(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"../../../namespaces/default/configmaps/x"}}`)): {
			corev1alpha1.ReasonPreflightError, "is not a valid name"},
		named("group", nil, inSecret(`{"apiVersion":"../v1","kind":"ConfigMap","metadata":{"name":"x"}}`)): {
			corev1alpha1.ReasonPreflightError, "is not a valid API group"},
		named("long", nil, inSecret(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"`+strings.Repeat("x", 100_000)+`"}}`)): {
			corev1alpha1.ReasonPreflightError, "the limit is 253"},
		&corev1alpha1.ClusterObjectSet{
			ObjectMeta: metav1.ObjectMeta{Name: ns},
			Spec: corev1alpha1.ObjectSetSpec{Revision: 1, ObjectSetTemplateSpec: corev1alpha1.ObjectSetTemplateSpec{
				Phases: []corev1alpha1.ObjectSetTemplatePhase{phase("one", configMap("nowhere", "v1"))},
			}},
		}: {corev1alpha1.ReasonPreflightError, "metadata.namespace is required"},
	}
	dropPatterns(t, "objectsets.package-operator.run")
	for s := range rows {
		harness.Eventually(t, patience, "the API server to accept the set", func(ctx context.Context) error {
			return env.Client.Create(ctx, s)
		})
	}
	awaitReports := func() {
		t.Helper()
		for s, want := range rows {
			await(t, s, "to report the name", func(s client.Object) error {
				return harness.HasCondition(s.(corev1alpha1.Conditioned), corev1alpha1.ConditionAvailable, metav1.ConditionFalse, want.reason, want.says)
			})
		}
	}
	awaitReports()

	manager.Stop()
	manager = env.StartManager(suite)
	env.Namespace(t, ns+"-other")
	install(t, deployment(ns+"-other", phase("one", configMap("object", "v1"))))
	awaitReports()
	for s := range rows {
		require.NoError(t, env.Client.Delete(t.Context(), s))
	}
	for s := range rows {
		harness.Eventually(t, patience, s.GetName()+" to be deleted", func(ctx context.Context) error { return gone(ctx, s) })
	}
}

// dropPatterns removes the patterns of names from a CRD until the test ends: older ones
// had none.
func dropPatterns(t *testing.T, name string) {
	t.Helper()
	definition := &unstructured.Unstructured{}
	definition.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	require.NoError(t, env.Client.Get(t.Context(), types.NamespacedName{Name: name}, definition))
	versions, _, err := unstructured.NestedSlice(definition.Object, "spec", "versions")
	require.NoError(t, err)
	fields := []string{"schema", "openAPIV3Schema", "properties", "spec", "properties", "phases", "items", "properties"}
	phase, _, err := unstructured.NestedMap(versions[0].(map[string]any), fields...)
	require.NoError(t, err)
	for _, field := range []string{"slices", "secretSlices"} {
		unstructured.RemoveNestedField(phase, field, "items", "pattern")
	}
	strict := definition.DeepCopy()
	require.NoError(t, unstructured.SetNestedMap(versions[0].(map[string]any), phase, fields...))
	require.NoError(t, unstructured.SetNestedSlice(definition.Object, versions, "spec", "versions"))
	require.NoError(t, env.Client.Update(t.Context(), definition))
	t.Cleanup(func() {
		strict.SetResourceVersion("")
		if err := env.Client.Patch(context.Background(), strict, client.Merge); err != nil {
			t.Error(err)
		}
	})
}

// A deployment must not control its own ancestors, because their deletions would wait for each
// other.
func TestOwnershipCycles(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	none := collision(corev1alpha1.CollisionProtectionNone)
	brings := func(name string, template string) corev1alpha1.ObjectSetObject {
		o := raw(fmt.Sprintf(`{"apiVersion":"package-operator.run/v1alpha1","kind":"ObjectDeployment","metadata":{"name":%q},`+
			`"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{%s}}}}`, name, template))
		none(&o)
		return o
	}
	self := deployment(ns, phase("one", brings("self", "")))
	self.Name = "self"
	env.Create(t, self)
	const says = "its deletion would never end"
	blocked := func(d *corev1alpha1.ObjectDeployment) error {
		return harness.HasCondition(d, corev1alpha1.ConditionStalled, metav1.ConditionTrue, "", says)
	}
	await(t, self, "to be refused", blocked)

	// A cycle by way of another deployment.
	back := fmt.Sprintf(`"phases":[{"name":"one","objects":[{"object":%s,"collisionProtection":"None"}]}]`, brings("first", "").Object.Raw)
	first := deployment(ns, phase("one", brings("second", back)))
	first.Name = "first"
	env.Create(t, first)
	second := &corev1alpha1.ObjectDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "second"}}
	await(t, second, "to be refused", blocked)
	if owners := first.GetOwnerReferences(); len(owners) > 0 {
		t.Errorf("the first one is owned by %v", owners)
	}
	require.NoError(t, env.Client.Delete(t.Context(), self))
	require.NoError(t, env.Client.Delete(t.Context(), first))
	harness.Eventually(t, patience, "all of them to be deleted", func(ctx context.Context) error { return gone(ctx, self, first, second) })
}

// Objects of the engine itself are refused in every collision mode.
func TestEngineObjects(t *testing.T) {
	t.Parallel()
	metadata := func(apiVersion, kind, namespace, name string) *metav1.PartialObjectMetadata {
		m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		m.APIVersion, m.Kind = apiVersion, kind
		return m
	}
	objects := []*metav1.PartialObjectMetadata{
		metadata("coordination.k8s.io/v1", "Lease", corev1alpha1.DefaultNamespace, corev1alpha1.LeaderElectionLease),
		metadata("v1", "Namespace", "", corev1alpha1.DefaultNamespace),
		metadata("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "packages.package-operator.run"),
		metadata("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "", "lockstep-foreground-deletion"),
	}
	dep := &corev1alpha1.ClusterObjectDeployment{ObjectMeta: metav1.ObjectMeta{Name: "engine-objects"}}
	labels := map[string]string{"app": "engine-objects"}
	dep.Spec.Selector.MatchLabels, dep.Spec.Template.Metadata.Labels = labels, labels
	ph := phase("one")
	for _, m := range objects {
		o := raw(fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q,"namespace":%q}}`, m.APIVersion, m.Kind, m.Name, m.Namespace))
		collision(corev1alpha1.CollisionProtectionNone)(&o)
		ph.Objects = append(ph.Objects, o)
	}
	dep.Spec.Template.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{ph}
	env.Create(t, dep)
	await(t, dep, "to be refused", func(d *corev1alpha1.ClusterObjectDeployment) error {
		return harness.HasCondition(d, corev1alpha1.ConditionStalled, metav1.ConditionTrue, "", "is a part of the engine itself", "Lease", "and 1 more")
	})
	require.NoError(t, env.Client.Delete(t.Context(), dep))
	harness.Eventually(t, patience, "the deployment to be deleted", func(ctx context.Context) error { return gone(ctx, dep) })
	for _, m := range objects {
		require.NoError(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(m), m))
		if m.DeletionTimestamp != nil || metav1.GetControllerOf(m) != nil {
			t.Errorf("%s %s was adopted: %v", m.Kind, m.Name, m.ObjectMeta)
		}
	}
}
