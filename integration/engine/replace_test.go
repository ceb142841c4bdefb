package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// leaving adds a field that the next template lacks.
func leaving(o *corev1alpha1.ObjectSetObject) {
	o.Object.Raw = []byte(strings.Replace(string(o.Object.Raw), `"data":{`, `"data":{"leaves":"v1",`, 1))
}

// An adopted object loses the fields of its former manager that the template lacks, at once or when
// a later template drops them. Fields of other managers stay.
func TestFieldsOfAnEarlierEngineLeave(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	former := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "object"},
		Data:       map[string]string{"value": "v1", "leaves": "v1", "former": "v1"},
	}
	require.NoError(t, env.Client.Create(t.Context(), former, client.FieldOwner("package-operator")))
	edit(t, ns, "object", `{"data":{"others":"added"}}`)

	adopt := collision(corev1alpha1.CollisionProtectionIfNoController)
	dep := install(t, deployment(ns, phase("one", configMap("object", "v1", adopt, leaving))))
	if is := get(t, ns, "object"); metav1.GetControllerOf(is) == nil || is.Data["leaves"] != "v1" || is.Data["former"] != "" || is.Data["others"] != "added" {
		t.Errorf("it was adopted with %v", is.Data)
	}
	change(t, dep, func(d *corev1alpha1.ObjectDeployment) {
		d.Spec.Template.Spec.Phases[0].Objects[0] = configMap("object", "v2", adopt)
	})
	awaitValue(t, ns, "object", "v2")
	awaitRollout(t, dep)
	if is := get(t, ns, "object"); is.Data["leaves"] != "" || is.Data["others"] != "added" || is.UID != former.UID {
		t.Errorf("after a field left the template the object has %v", is.Data)
	}
}

// An admission policy that the live object violates and the new template meets does not
// block the removal of fields.
func TestFieldsLeaveUnderAPolicy(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	dep := install(t, deployment(ns, phase("one", configMap("object", "v1", leaving))))

	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: ns},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: ns}},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
				}}},
			},
			Validations: []admissionregistrationv1.Validation{{Expression: `object.data.value != "v1"`, Message: "v1 is not wanted any more"}},
		},
	}
	env.Create(t, policy)
	env.Create(t, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: ns},
		Spec:       admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: ns, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}},
	})
	harness.Eventually(t, harness.Patience, "the policy to be enforced", func(ctx context.Context) error {
		if err := env.Client.Update(ctx, get(t, ns, "object"), client.DryRunAll); !apierrors.IsInvalid(err) {
			return fmt.Errorf("an update ends with %w", err)
		}
		return nil
	})

	change(t, dep, func(d *corev1alpha1.ObjectDeployment) {
		d.Spec.Template.Spec.Phases[0].Objects[0] = configMap("object", "v2")
	})
	awaitRollout(t, dep)
	if is := get(t, ns, "object"); is.Data["value"] != "v2" || is.Data["leaves"] != "" {
		t.Errorf("after a field left the template the object has %v", is.Data)
	}
}
