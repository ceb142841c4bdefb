package config_test

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/config"
	"lockstep.run/lockstep/test/require"
)

// generates is an authorizer that lets a user generate packages in the cluster, do everything, or
// do nothing there.
type generates string

func (g generates) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if (g == "all" || string(g) == a.GetVerb()) && a.GetAPIGroup() == corev1alpha1.GroupName && a.GetResource() == "packages" && a.GetNamespace() == "" {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

func (g generates) ConditionsAwareAuthorize(context.Context, authorizer.Attributes) authorizer.ConditionsAwareDecision {
	panic("not asked by policies")
}

func (g generates) EvaluateConditions(context.Context, authorizer.ConditionsAwareDecision, authorizer.ConditionsData) (authorizer.Decision, string, error) {
	panic("not asked by policies")
}

// TestGeneratedPackagesPolicy: only the manager, in any namespace, can change the label, the spec,
// the finalizers and the owners of a generated package until the package is adopted.
func TestGeneratedPackagesPolicy(t *testing.T) {
	t.Parallel()
	const adopt = corev1alpha1.AdoptAnnotation + "=true"
	plain := func() *corev1alpha1.Package {
		p := &corev1alpha1.Package{Spec: corev1alpha1.PackageSpec{Image: "a"}}
		p.APIVersion, p.Kind, p.Namespace, p.Name = corev1alpha1.GroupVersion.String(), "Package", "team-a", "shop-db"
		p.Labels = map[string]string{"team": "a"}
		return p
	}
	generated := func() *corev1alpha1.Package {
		p := plain()
		p.Labels[corev1alpha1.GeneratedLabel] = "true"
		p.Labels[corev1alpha1.RequiredByLabelPrefix+"shop"] = "team-a"
		p.Annotations = map[string]string{"x": "y"}
		p.Finalizers = []string{corev1alpha1.MetricsFinalizer, "example.com/other"}
		return p
	}
	owner := []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: types.UID("1")}}
	for name, tc := range map[string]struct {
		from, to func() *corev1alpha1.Package
		change   func(*corev1alpha1.Package)
		refused  string
	}{
		"create a plain one":      {nil, plain, nil, ""},
		"create a generated one":  {nil, generated, nil, adopt},
		"create with another one": {nil, plain, func(p *corev1alpha1.Package) { p.Labels[corev1alpha1.GeneratedLabel] = "false" }, ""},
		"put the label on":        {plain, plain, func(p *corev1alpha1.Package) { p.Labels[corev1alpha1.GeneratedLabel] = "true" }, adopt},
		"take the label off":      {generated, generated, func(p *corev1alpha1.Package) { delete(p.Labels, corev1alpha1.GeneratedLabel) }, adopt},
		"change the label":        {generated, generated, func(p *corev1alpha1.Package) { p.Labels[corev1alpha1.GeneratedLabel] = "no" }, adopt},
		"take all labels off":     {generated, generated, func(p *corev1alpha1.Package) { p.Labels = nil }, adopt},
		"take the label off with the annotation": {generated, generated, func(p *corev1alpha1.Package) {
			delete(p.Labels, corev1alpha1.GeneratedLabel)
			p.Annotations[corev1alpha1.AdoptAnnotation] = "true"
		}, adopt},
		"adopt": {generated, generated, func(p *corev1alpha1.Package) { p.Annotations[corev1alpha1.AdoptAnnotation] = "true" }, ""},
		"adopt and change": {generated, generated, func(p *corev1alpha1.Package) {
			p.Annotations[corev1alpha1.AdoptAnnotation], p.Spec.Image, p.Finalizers = "true", "b", nil
		}, ""},
		"another value":           {generated, generated, func(p *corev1alpha1.Package) { p.Annotations[corev1alpha1.AdoptAnnotation], p.Spec.Image = "no", "b" }, "its spec"},
		"change the spec":         {generated, generated, func(p *corev1alpha1.Package) { p.Spec.Image = "b" }, "its spec"},
		"change a plain one":      {plain, plain, func(p *corev1alpha1.Package) { p.Spec.Image, p.OwnerReferences, p.Labels = "b", owner, nil }, ""},
		"other metadata":          {generated, generated, func(p *corev1alpha1.Package) { p.Labels["x"], p.Annotations["y"] = "1", "2" }, ""},
		"retry":                   {generated, generated, func(p *corev1alpha1.Package) { p.Annotations["package-operator.run/retry"] = "1" }, ""},
		"add an owner":            {generated, generated, func(p *corev1alpha1.Package) { p.OwnerReferences = owner }, "owners cannot be added"},
		"take an owner off":       {func() *corev1alpha1.Package { p := generated(); p.OwnerReferences = owner; return p }, generated, nil, ""},
		"take the finalizer off":  {generated, generated, func(p *corev1alpha1.Package) { p.Finalizers = p.Finalizers[1:] }, "finalizers"},
		"take all finalizers off": {generated, generated, func(p *corev1alpha1.Package) { p.Finalizers = nil }, "finalizers"},
		"another finalizer":       {generated, generated, func(p *corev1alpha1.Package) { p.Finalizers = p.Finalizers[:1] }, ""},
		"add a finalizer":         {generated, generated, func(p *corev1alpha1.Package) { p.Finalizers = append(p.Finalizers, "orphan") }, ""},
		"take a dependent off":    {generated, generated, func(p *corev1alpha1.Package) { delete(p.Labels, corev1alpha1.RequiredByLabelPrefix+"shop") }, "record of its dependents"},
		"change a dependent":      {generated, generated, func(p *corev1alpha1.Package) { p.Labels[corev1alpha1.RequiredByLabelPrefix+"shop"] = "b" }, "record of its dependents"},
		"add a dependent":         {generated, generated, func(p *corev1alpha1.Package) { p.Labels[corev1alpha1.RequiredByLabelPrefix+"x"] = "b" }, "record of its dependents"},
		"what people wrote on theirs": {plain, plain, func(p *corev1alpha1.Package) {
			p.Labels[corev1alpha1.RequiredByLabelPrefix+"x"] = "b"
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to, from := tc.to(), (*corev1alpha1.Package)(nil)
			if tc.from != nil {
				from = tc.from()
			}
			if tc.change != nil {
				tc.change(to)
			}
			for who, as := range map[string]struct {
				user    string
				may     generates
				manager bool
			}{
				"a user":                       {"someone", "", false},
				"an administrator":             {"kubernetes-admin", "all", false},
				"a service account":            {"system:serviceaccount:team-a:tenant", "", false},
				"an account with all rights":   {"system:serviceaccount:flux-system:kustomize-controller", "all", false},
				"the manager":                  {"system:serviceaccount:package-operator-system:lockstep-manager", "generate", true},
				"the manager with all rights":  {"system:serviceaccount:package-operator-system:lockstep-manager", "all", true},
				"the manager without a role":   {"system:serviceaccount:package-operator-system:lockstep-manager", "", false},
				"the manager, named otherwise": {"system:serviceaccount:elsewhere:engine", "generate", true},
			} {
				want := tc.refused
				if as.manager {
					want = ""
				}
				decisions := review(t, from, to, as.user, as.may).Decisions
				var refusals []string
				for _, d := range decisions {
					if d.Evaluation == validating.EvalError {
						t.Fatalf("%s: the policy does not evaluate: %s", who, d.Message)
					}
					if d.Action == validating.ActionDeny {
						refusals = append(refusals, d.Message)
					}
					if d.Action == validating.ActionDeny && d.Reason != metav1.StatusReasonForbidden {
						t.Errorf("%s: reason is %s, want Forbidden", who, d.Reason)
					}
				}
				if (len(refusals) > 0) != (want != "") || !strings.Contains(strings.Join(refusals, "\n"), want) {
					t.Errorf("%s: refused with %q, want %q", who, refusals, want)
				}
			}
		})
	}
}

// review asks the policy on generated packages about a creation, or an update.
func review(t *testing.T, from, to *corev1alpha1.Package, name string, may generates) validating.ValidateResult {
	t.Helper()
	content := func(p *corev1alpha1.Package) runtime.Object {
		if p == nil {
			return nil
		}
		u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(p)
		require.NoError(t, err)
		return &unstructured.Unstructured{Object: u}
	}
	operation, options := admission.Create, runtime.Object(&metav1.CreateOptions{})
	if from != nil {
		operation, options = admission.Update, &metav1.UpdateOptions{}
	}
	return ask(t, config.GeneratedPackagesPolicy, admission.NewAttributesRecord(content(to), content(from), to.GroupVersionKind(), to.Namespace, to.Name,
		corev1alpha1.GroupVersion.WithResource("packages"), "", operation, options, false, &user.DefaultInfo{Name: name}), may)
}
