package tenants_test

import (
	"context"
	"errors"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// If a policy refuses to add or to remove the manager's finalizer, the statuses report that.
// Without the policy, the manager continues.
func TestFinalizerPolicy(t *testing.T) {
	t.Parallel()
	u := newTenant(t, env, "", "lockstep-author")
	binding := u.refuseFinalizers(t)
	pkg := harness.Package(u.namespace, "shop", u.env.Push(t, u.namespace+":v1", harness.Phased(u.namespace, 1, 1)))
	tmpl := &corev1alpha1.ObjectTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: "made"}}
	tmpl.Spec.Template, tmpl.Spec.Sources = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: made}\n", []corev1alpha1.ObjectTemplateSource{}
	u.create(t, pkg, tmpl)
	harness.Await(t, u.env, patience, pkg, "to be refused", refusedTo[*corev1alpha1.Package]("put the finalizer on"))
	harness.Await(t, u.env, patience, tmpl, "to be refused", refusedTo[*corev1alpha1.ObjectTemplate]("put the finalizer on"))

	require.NoError(t, u.env.Client.Delete(t.Context(), binding))
	u.retry(t, pkg, tmpl)
	harness.Await(t, u.env, harness.Patience, pkg, "to be rolled out", ready[*corev1alpha1.Package])
	harness.Await(t, u.env, harness.Patience, tmpl, "to be rendered", ready[*corev1alpha1.ObjectTemplate])

	binding = u.refuseFinalizers(t)
	require.NoError(t, u.Delete(t.Context(), pkg), u.Delete(t.Context(), tmpl))
	harness.Await(t, u.env, patience, pkg, "to be refused", refusedTo[*corev1alpha1.Package]("take the finalizer off"))
	harness.Await(t, u.env, patience, tmpl, "to be refused", refusedTo[*corev1alpha1.ObjectTemplate]("take the finalizer off"))
	require.NoError(t, u.env.Client.Delete(t.Context(), binding))
	u.retry(t, pkg, tmpl)
	u.env.WaitGone(t, harness.Patience, pkg)
	u.env.WaitGone(t, harness.Patience, tmpl)
}

// retry ends the manager's backoff, which on a busy machine is long by now.
func (u *tenant) retry(t *testing.T, objs ...client.Object) {
	t.Helper()
	for _, obj := range objs {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"package-operator.run/retry":"now"}}}`))
		require.NoError(t, client.IgnoreNotFound(u.Patch(t.Context(), obj, patch)))
	}
}

func refusedTo[T corev1alpha1.Conditioned](doing string) func(T) error {
	return func(obj T) error {
		return harness.HasCondition(obj, corev1alpha1.ConditionStalled, metav1.ConditionTrue, corev1alpha1.ReasonApplyError, doing, "no finalizers here")
	}
}

func ready[T corev1alpha1.Conditioned](obj T) error {
	return harness.HasCondition(obj, corev1alpha1.ConditionReady, metav1.ConditionTrue, "")
}

// refuseFinalizers makes the API server refuse changes of the finalizers of packages and templates
// in the tenant's namespace.
func (u *tenant) refuseFinalizers(t *testing.T) client.Object {
	t.Helper()
	meta := metav1.ObjectMeta{Name: u.namespace}
	rule := admissionregistrationv1.NamedRuleWithOperations{}
	rule.Operations = []admissionregistrationv1.OperationType{admissionregistrationv1.Update}
	rule.APIGroups, rule.APIVersions = []string{corev1alpha1.GroupName}, []string{"*"}
	rule.Resources = []string{"packages", "objecttemplates", "packagerepositories"}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: meta}
	policy.Spec.MatchConstraints = &admissionregistrationv1.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: u.namespace}},
		ResourceRules:     []admissionregistrationv1.NamedRuleWithOperations{rule},
	}
	policy.Spec.Validations = []admissionregistrationv1.Validation{{
		Expression: "object.metadata.?finalizers.orValue([]) == oldObject.metadata.?finalizers.orValue([])", Message: "no finalizers here",
	}}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta}
	binding.Spec.PolicyName = policy.Name
	binding.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}
	probe := &corev1alpha1.PackageRepository{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: "probe"}}
	probe.Spec.Paused, probe.Spec.Source.Inline = true, &corev1alpha1.RepositoryInlineSource{}
	for _, obj := range []client.Object{policy, binding, probe} {
		require.NoError(t, client.IgnoreAlreadyExists(u.env.Client.Create(t.Context(), obj)))
	}
	t.Cleanup(func() {
		_ = u.env.Client.Delete(context.Background(), &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta})
		_ = u.env.Client.Delete(context.Background(), &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: meta})
	})
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":["example.com/probe"]}}`))
	harness.Eventually(t, harness.Patience, "the policy", func(ctx context.Context) error {
		if err := u.env.Client.Patch(ctx, probe.DeepCopy(), patch, client.DryRunAll); err == nil {
			return errors.New("no request is refused")
		}
		return nil
	})
	return binding
}
