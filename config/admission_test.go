package config_test

import (
	"context"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/utils/ptr"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/config"
	"lockstep.run/lockstep/test/require"
)

func TestForegroundDeletionPolicy(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name       string
		options    *metav1.DeleteOptions
		finalizers []string
		refused    bool
	}{
		{"no options", nil, nil, false},
		{"no policy", &metav1.DeleteOptions{}, nil, false},
		{"background", policy(metav1.DeletePropagationBackground), nil, false},
		{"orphan", policy(metav1.DeletePropagationOrphan), nil, false},
		{"foreground", policy(metav1.DeletePropagationForeground), nil, true},
		{"foreground with preconditions, like the garbage collector's requests",
			&metav1.DeleteOptions{
				PropagationPolicy: ptr.To(metav1.DeletePropagationForeground),
				Preconditions:     metav1.NewUIDPreconditions("1"),
			}, nil, true},
		{"legacy orphan", legacy(true), nil, false},
		{"legacy background", legacy(false), nil, false},
		{"foreground by a finalizer", &metav1.DeleteOptions{}, []string{corev1alpha1.CachedFinalizer, metav1.FinalizerDeleteDependents}, true},
		{"background in spite of a finalizer", policy(metav1.DeletePropagationBackground), []string{metav1.FinalizerDeleteDependents}, false},
		{"other finalizers", &metav1.DeleteOptions{}, []string{corev1alpha1.CachedFinalizer, metav1.FinalizerOrphanDependents}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			result := evaluate(t, tc.options, tc.finalizers)
			if len(result.Decisions) != 1 {
				t.Fatalf("there are %d decisions, want 1", len(result.Decisions))
			}
			decision := result.Decisions[0]
			if decision.Evaluation == validating.EvalError {
				t.Fatalf("the policy does not evaluate: %s", decision.Message)
			}
			if refused := decision.Action == validating.ActionDeny; refused != tc.refused {
				t.Fatalf("refused: %t, want %t", refused, tc.refused)
			}
			if !tc.refused {
				return
			}
			for _, remedy := range []string{
				"--cascade=background",
				"argocd.argoproj.io/sync-options: PrunePropagationPolicy=background",
			} {
				require.Contains(t, decision.Message, remedy, "message")
			}
			if decision.Reason != metav1.StatusReasonForbidden {
				t.Errorf("reason is %s, want Forbidden", decision.Reason)
			}
		})
	}
}

func TestForegroundDeletionPolicyCoversTheOwnersOfObjects(t *testing.T) {
	t.Parallel()
	policy := loadPolicy(t, config.ForegroundDeletionPolicy)
	if len(policy.Spec.MatchConstraints.ResourceRules) != 1 {
		t.Fatal("want one resource rule")
	}
	rule := policy.Spec.MatchConstraints.ResourceRules[0]
	got := map[string]bool{}
	for _, resource := range rule.Resources {
		got[resource] = true
	}
	for name, kind := range kinds {
		owner := strings.HasSuffix(name, "ObjectDeployment") || strings.HasSuffix(name, "ObjectSet") ||
			strings.HasSuffix(name, "ObjectSetPhase")
		if got[kind.plural] != owner {
			t.Errorf("%s covered: %t, want %t", kind.plural, got[kind.plural], owner)
		}
	}
	if len(rule.Operations) != 1 || rule.Operations[0] != admissionregistrationv1.Delete {
		t.Errorf("operations are %v, want DELETE", rule.Operations)
	}
}

func policy(propagation metav1.DeletionPropagation) *metav1.DeleteOptions {
	return &metav1.DeleteOptions{PropagationPolicy: &propagation}
}

// legacy is the form of orphan or background of clients from before propagation policies.
func legacy(orphan bool) *metav1.DeleteOptions {
	return &metav1.DeleteOptions{OrphanDependents: &orphan} //nolint:staticcheck // API servers still accept it
}

// evaluate asks the policy on deletion in the foreground.
func evaluate(t *testing.T, options *metav1.DeleteOptions, finalizers []string) validating.ValidateResult {
	t.Helper()
	set := &unstructured.Unstructured{}
	set.SetGroupVersionKind(corev1alpha1.GroupVersion.WithKind("ObjectSet"))
	set.SetName("shop-1")
	set.SetFinalizers(finalizers)
	var operationOptions runtime.Object
	if options != nil {
		operationOptions = options
	}
	return ask(t, config.ForegroundDeletionPolicy, admission.NewAttributesRecord(nil, set, set.GroupVersionKind(), "team-a", "shop-1",
		corev1alpha1.GroupVersion.WithResource("objectsets"), "", admission.Delete, operationOptions, false, &user.DefaultInfo{Name: "someone"}), nil)
}

// ask asks a policy as the API server does.
func ask(t *testing.T, name string, attributes admission.Attributes, authz authorizer.Authorizer) validating.ValidateResult {
	t.Helper()
	return compile(t, name)(attributes, authz)
}

// compile returns a function that asks a policy.
func compile(t *testing.T, name string) func(admission.Attributes, authorizer.Authorizer) validating.ValidateResult {
	t.Helper()
	policy := loadPolicy(t, name)
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	require.NoError(t, err)
	declarations := cel.OptionalVariableDeclarations{HasAuthorizer: true}
	variables := make([]cel.NamedExpressionAccessor, len(policy.Spec.Variables))
	for i, variable := range policy.Spec.Variables {
		variables[i] = &validating.Variable{Name: variable.Name, Expression: variable.Expression}
	}
	compiler.CompileAndStoreVariables(variables, declarations, environment.NewExpressions)
	conditions := make([]cel.ExpressionAccessor, len(policy.Spec.Validations))
	for i, v := range policy.Spec.Validations {
		conditions[i] = &validating.ValidationCondition{Expression: v.Expression, Message: v.Message, Reason: v.Reason}
	}
	none := compiler.CompileCondition(nil, declarations, environment.NewExpressions)
	evaluator := compiler.CompileCondition(conditions, declarations, environment.NewExpressions)
	for _, err := range evaluator.CompilationErrors() {
		t.Fatal(err)
	}
	matches := make([]cel.ExpressionAccessor, len(policy.Spec.MatchConditions))
	for i, m := range policy.Spec.MatchConditions {
		matches[i] = &matchconditions.MatchCondition{Name: m.Name, Expression: m.Expression}
	}
	var matcher matchconditions.Matcher
	if len(matches) > 0 {
		filter := compiler.CompileCondition(matches, declarations, environment.NewExpressions)
		for _, err := range filter.CompilationErrors() {
			t.Fatal(err)
		}
		matcher = matchconditions.NewMatcher(filter, policy.Spec.FailurePolicy, "policy", "validate", name)
	}
	validator := validating.NewValidator(evaluator, matcher, none, none, policy.Spec.FailurePolicy, nil)
	return func(attributes admission.Attributes, authz authorizer.Authorizer) validating.ValidateResult {
		t.Helper()
		versioned, err := admission.NewVersionedAttributes(attributes, attributes.GetKind(), admission.NewObjectInterfacesFromScheme(runtime.NewScheme()))
		require.NoError(t, err)
		return validator.Validate(context.Background(), attributes.GetResource(), versioned, nil, nil, celconfig.RuntimeCELCostBudget, authz)
	}
}

func loadPolicy(t *testing.T, name string) *admissionregistrationv1.ValidatingAdmissionPolicy {
	t.Helper()
	objects, err := config.Objects(config.FolderAdmission)
	require.NoError(t, err)
	for _, object := range objects {
		if object.GetKind() != "ValidatingAdmissionPolicy" || object.GetName() != name {
			continue
		}
		policy := &admissionregistrationv1.ValidatingAdmissionPolicy{}
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, policy))
		return policy
	}
	t.Fatalf("no policy called %s", name)
	return nil
}
