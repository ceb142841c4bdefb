package cli_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/internal/permissions"
	"lockstep.run/lockstep/test/require"
)

// lacking removes one right after the other from the output of rbac for a package, and
// installs the package with the remaining ones. A quick run only tries some rights.
func (p project) lacking(t *testing.T, env *harness.Env, image string) {
	t.Helper()
	const namespace = corev1alpha1.DefaultNamespace
	user := "system:serviceaccount:" + namespace + ":" + p.name
	pkg := harness.ClusterPackage(p.name, image)
	pkg.Spec.ServiceAccountName = p.name
	objects := printed(t, env, image, p.name, "--cluster", "--account", p.name)
	journal := env.Journal(t)
	rights, granted := singleRights(t, objects), false
	for i, r := range rights {
		if !harness.Deep() && i%(len(rights)/4) != 0 {
			continue
		}
		for j, u := range append([]*unstructured.Unstructured{r.without}, objects...) {
			if u == r.from {
				continue
			}
			require.NoError(t, env.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u.DeepCopy()), client.FieldOwner("admin"), client.ForceOwnership))
			if j == 0 {
				awaitDenied(t, env, user, r) // before the right is back that was missing last: never has the account all of them
			}
		}
		if i == 0 {
			env.Create(t, pkg)
		} else {
			harness.Edit(t, env, pkg, func(p *corev1alpha1.ClusterPackage) {
				p.Annotations = map[string]string{corev1alpha1.RetryAnnotation: strconv.Itoa(i)}
			})
		}
		harness.Eventually(t, harness.Patience, "the missing right"+r.text, func(context.Context) error {
			for _, c := range env.Package(t, "", p.name).PackageStatus().Conditions {
				// The API server refuses a role with a right that its writer lacks, in the phase of
				// the role.
				inRole := strings.Contains(c.Message, "may not grant rights that it does not have itself")
				if granted = granted || inRole; inRole || c.Type == corev1alpha1.ConditionAuthorized && strings.Contains(c.Message, r.text) {
					return nil
				}
			}
			return fmt.Errorf("it says %+v", env.Package(t, "", p.name).PackageStatus().Conditions)
		})
	}
	entries, err := journal.Since(t.Context(), journal.From, func(e sandbox.Entry) bool {
		return e.ImpersonatedUser == user && !e.DryRun && slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, e.Verb) &&
			e.Object.Group != "authorization.k8s.io"
	})
	require.NoError(t, err)
	if len(entries) > 0 && !granted {
		t.Errorf("it is written without a right:%s", harness.Lines(entries))
	}
	require.NoError(t, env.Client.Delete(t.Context(), pkg))
	env.WaitGone(t, harness.Patience, pkg)
}

// singleRight is a verb on a resource in the role from. The role without lacks it. text names
// the right in messages. A namespace precedes it there, which differs from the role's if the
// package contains the namespace.
type singleRight struct {
	permissions.Right
	namespace, text string
	from, without   *unstructured.Unstructured
}

// singleRights returns the rights for the engine's verbs in roles. It omits rights that other
// rules grant as well, because removing them has no effect.
func singleRights(t *testing.T, objects []*unstructured.Unstructured) (all []singleRight) {
	t.Helper()
	for _, u := range objects {
		role := rbacv1.ClusterRole{}
		if !strings.HasSuffix(u.GetKind(), "Role") {
			continue
		}
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &role))
		for i, rule := range role.Rules {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					if !slices.Contains(permissions.Verbs, verb) {
						continue
					}
					r := singleRight{Right: permissions.Right{Verb: verb, Group: rule.APIGroups[0], Resource: resource}, namespace: u.GetNamespace(), from: u}
					if len(rule.ResourceNames) > 0 {
						r.Name = rule.ResourceNames[0]
					}
					left := reduced(role.Rules, i, resource, verb)
					if permissions.NewHeld(left).Has(r.Right) {
						continue
					}
					r.without = u.DeepCopy()
					raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&rbacv1.ClusterRole{Rules: left})
					require.NoError(t, err)
					r.without.Object["rules"] = raw["rules"]
					r.text = ": " + permissions.DescribeRules([]rbacv1.PolicyRule{{Verbs: []string{verb}, APIGroups: rule.APIGroups, Resources: []string{resource}}})
					all = append(all, r)
				}
			}
		}
	}
	return all
}

// reduced returns rules without a verb on a resource in the rule at an index.
func reduced(rules []rbacv1.PolicyRule, at int, resource, verb string) []rbacv1.PolicyRule {
	rule := rules[at]
	others, same := *rule.DeepCopy(), *rule.DeepCopy()
	others.Resources = slices.DeleteFunc(others.Resources, func(r string) bool { return r == resource })
	same.Resources = []string{resource}
	same.Verbs = slices.DeleteFunc(same.Verbs, func(v string) bool { return v == verb })
	left := slices.Concat(rules[:at:at], rules[at+1:])
	if len(others.Resources) > 0 {
		left = append(left, others)
	}
	if len(same.Verbs) > 0 {
		left = append(left, same)
	}
	return left
}

// awaitDenied waits until the API server knows that a user lacks a right.
func awaitDenied(t *testing.T, env *harness.Env, user string, r singleRight) {
	t.Helper()
	resource, subresource, _ := strings.Cut(r.Resource, "/")
	env.AwaitNoRight(t, user, authorizationv1.ResourceAttributes{
		Namespace: r.namespace, Verb: r.Verb, Group: r.Group, Resource: resource, Subresource: subresource, Name: r.Name,
	})
}
