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

// lacking removes one rule after the other from the roles that rbac prints for a package, and
// installs the package with the remaining ones. A quick run tries some rules.
func (p project) lacking(t *testing.T, env *harness.Env, image string) {
	t.Helper()
	const namespace = corev1alpha1.DefaultNamespace
	user := "system:serviceaccount:" + namespace + ":" + p.name
	pkg := harness.ClusterPackage(p.name, image)
	pkg.Spec.ServiceAccountName, pkg.Spec.Paused = p.name, true
	env.Create(t, pkg)
	objects := printed(t, env, image, p.name, "--cluster", "--account", p.name)
	journal, tried, granted := env.Journal(t), 0, false
	apply := func(u *unstructured.Unstructured) {
		t.Helper()
		require.NoError(t, env.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u.DeepCopy()), client.FieldOwner("admin"), client.ForceOwnership))
	}
	for _, u := range objects {
		var role rbacv1.ClusterRole
		if strings.HasSuffix(u.GetKind(), "Role") {
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &role))
		}
		for i, rule := range role.Rules {
			right := permissions.Right{Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: rule.Resources[0]}
			if len(rule.ResourceNames) > 0 {
				right.Name = rule.ResourceNames[0]
			}
			left := slices.Delete(slices.Clone(role.Rules), i, i+1)
			if !slices.Contains(permissions.Verbs, right.Verb) || permissions.NewHeld(left).Has(right) || tried == 4 && !harness.Deep() {
				continue
			}
			raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&rbacv1.ClusterRole{Rules: left})
			require.NoError(t, err)
			without := u.DeepCopy()
			without.Object["rules"] = raw["rules"]
			apply(without)
			resource, subresource, _ := strings.Cut(right.Resource, "/")
			env.AwaitNoRight(t, user, authorizationv1.ResourceAttributes{ // before the rule is back that was missing last: never has the account all of them
				Namespace: u.GetNamespace(), Verb: right.Verb, Group: right.Group, Resource: resource, Subresource: subresource, Name: right.Name,
			})
			for _, other := range objects {
				if other != u {
					apply(other)
				}
			}
			tried++
			harness.Edit(t, env, pkg, func(p *corev1alpha1.ClusterPackage) {
				p.Spec.Paused, p.Annotations = false, map[string]string{corev1alpha1.RetryAnnotation: strconv.Itoa(tried)}
			})
			harness.Eventually(t, harness.Patience, "the missing right on "+resource, func(context.Context) error {
				for _, c := range env.Package(t, "", p.name).PackageStatus().Conditions {
					// The API server refuses a role with a right that its writer lacks, in the phase of
					// the role.
					inRole := strings.Contains(c.Message, "may not grant rights that it does not have itself")
					if granted = granted || inRole; inRole || c.Type == corev1alpha1.ConditionAuthorized && strings.Contains(c.Message, resource) {
						return nil
					}
				}
				return fmt.Errorf("it says %+v", env.Package(t, "", p.name).PackageStatus().Conditions)
			})
		}
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
