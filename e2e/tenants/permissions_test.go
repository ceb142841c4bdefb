package tenants_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// permissionCeiling is the ClusterRole that the manager of these tests has as its ceiling.
const permissionCeiling = "permissions-above-the-ceiling"

// asking pushes a package of a ConfigMap. It requests rules for its workload, the account web.
func asking(t *testing.T, name, rules string) string {
	t.Helper()
	return env.Push(t, "permissions-"+name+":v1", harness.Files{
		"manifest.yaml": harness.Manifest(name, []string{"p"}, "  permissions: {serviceAccountName: web, rules: ["+rules+"]}\n"),
		"object.yaml":   harness.ConfigMap(name, "p", "v1"),
	})
}

const getPods = "{verbs: [get], apiGroups: [''], resources: [pods]}"

// A tenant's package gets rights within the ceiling, in its own namespace. If it requests more
// in any notation, none of its objects are written. A chosen account, a patch, or an existing
// role with its name does not lead to more rights either.
func TestPermissionsAboveTheCeiling(t *testing.T) {
	t.Parallel()
	u := newTenant(t, env, "")
	ns := u.namespace
	journal := env.Journal(t)
	refuses := func(name, typ, reason string, parts ...string) {
		t.Helper()
		c := env.WaitCondition(t, ns, name, typ, string(metav1.ConditionFalse))
		if c.Reason != reason {
			t.Errorf("%s: %+v, want %s", name, c, reason)
		}
		refusedWith(t, c.Message, parts...)
		for _, absent := range []client.Object{&rbacv1.Role{}, &rbacv1.RoleBinding{}, &corev1.ConfigMap{}, &corev1alpha1.ObjectDeployment{}} {
			if _, isDeployment := absent.(*corev1alpha1.ObjectDeployment); isDeployment && typ != corev1alpha1.ConditionPermissionsGranted {
				continue
			}
			named := name
			if _, isConfigMap := absent.(*corev1.ConfigMap); !isConfigMap && !strings.Contains(fmt.Sprintf("%T", absent), "Deployment") {
				named += "-permissions"
			}
			if err := env.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: named}, absent); client.IgnoreNotFound(err) != nil || err == nil {
				t.Errorf("%s: there is a %T %s (%v)", name, absent, named, err)
			}
		}
	}

	u.create(t, harness.Package(ns, "early", asking(t, "early", getPods)))
	refuses("early", corev1alpha1.ConditionPermissionsGranted, corev1alpha1.ReasonNoCeiling, "There is no ClusterRole "+permissionCeiling, ": get pods.")

	most := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: permissionCeiling}, Rules: []rbacv1.PolicyRule{
		{Verbs: []string{"get", "list", "watch"}, APIGroups: []string{""}, Resources: []string{"pods"}},
		{Verbs: []string{"*"}, APIGroups: []string{""}, Resources: []string{"configmaps"}},
		{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"mine"}},
		{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"}},
	}}
	env.Create(t, most)
	t.Cleanup(func() { _ = env.Client.Delete(context.Background(), most) })
	env.WaitAvailable(t, ns, "early")
	may := func(namespace string, want bool, resource, verb, name string) {
		t.Helper()
		harness.Eventually(t, harness.Patience, "the rights of the workload", func(ctx context.Context) error {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User:               "system:serviceaccount:" + ns + ":web",
				ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Resource: resource, Name: name},
			}}
			if err := env.Client.Create(ctx, review); err != nil {
				return err
			}
			if review.Status.Allowed != want {
				return fmt.Errorf("%s %s in %q: %t", verb, resource, namespace, review.Status.Allowed)
			}
			return nil
		})
	}
	may(ns, true, "pods", "get", "")
	may(ns, false, "pods", "list", "")
	may(metav1.NamespaceSystem, false, "pods", "get", "")

	for name, tc := range map[string]struct{ rules, lacks string }{
		"verbs":       {"{verbs: ['*'], apiGroups: [''], resources: [pods]}", ": * pods."},
		"resources":   {"{verbs: [get], apiGroups: [''], resources: ['*']}", ": get *."},
		"everything":  {"{verbs: ['*'], apiGroups: ['*'], resources: ['*']}", ": * *.*."},
		"subresource": {"{verbs: [get], apiGroups: [''], resources: [pods/exec]}", ": get pods/exec."},
		"names":       {"{verbs: [get], apiGroups: [''], resources: [secrets], resourceNames: [mine, theirs]}", ": get secrets (theirs)."},
		"no-names":    {"{verbs: [get], apiGroups: [''], resources: [secrets]}", ": get secrets."},
		"group":       {"{verbs: [get], apiGroups: ['*'], resources: [pods]}", ": get pods.*."},
		"escalate":    {"{verbs: [escalate, bind], apiGroups: [rbac.authorization.k8s.io], resources: [roles]}", ": bind, escalate roles.rbac.authorization.k8s.io."},
		"impersonate": {"{verbs: [impersonate], apiGroups: [''], resources: [serviceaccounts]}, " + getPods, ": impersonate serviceaccounts."},
	} {
		u.create(t, harness.Package(ns, name, asking(t, name, tc.rules)))
		refuses(name, corev1alpha1.ConditionPermissionsGranted, corev1alpha1.ReasonAboveCeiling, "ClusterRole "+permissionCeiling, tc.lacks)
	}
	for name, tc := range map[string]struct{ manifest, says string }{
		"paths":   {"  permissions: {serviceAccountName: web, rules: [{verbs: [get], nonResourceURLs: [/metrics]}]}\n", "a Package is granted rights in its own namespace only"},
		"account": {"  permissions: {serviceAccountName: 'kube-system:web', rules: [" + getPods + "]}\n", `"kube-system:web" is not a valid ServiceAccount name`},
		"users":   {"  permissions: {aggregateTo: [edit]}\n", "a ClusterRole is cluster-scoped, and a Package may only bring objects of its own namespace"},
	} {
		image := env.Push(t, "permissions-"+name+":v1", harness.Files{"manifest.yaml": harness.Manifest(name, []string{"p"}, tc.manifest), "object.yaml": harness.ConfigMap(name, "p", "v1")})
		u.create(t, harness.Package(ns, name, image))
		refusedWith(t, env.WaitCondition(t, ns, name, corev1alpha1.ConditionInvalid, "True").Message, tc.says)
	}

	widened := harness.Package(ns, "widened", asking(t, "widened", getPods))
	widened.Spec.Patches = []corev1alpha1.PackagePatch{{
		Target: &corev1alpha1.PatchTarget{Kind: "Role"}, Patch: `[{"op": "replace", "path": "/rules/0/verbs", "value": ["*"]}]`,
	}}
	u.create(t, widened)
	refusedWith(t, env.WaitCondition(t, ns, "widened", corev1alpha1.ConditionInvalid, "True").Message, "spec.patches[0]")

	// A role of an administrator that has the name is neither changed nor bound.
	taken := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "taken-permissions"}, Rules: []rbacv1.PolicyRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}}}
	env.Create(t, taken)
	pkg := harness.Package(ns, "taken", asking(t, "taken", getPods))
	pkg.Spec.CollisionProtection = corev1alpha1.CollisionProtectionNone
	u.create(t, pkg)
	harness.Eventually(t, harness.Patience, "the collision", func(context.Context) error {
		return conditionSays(env.Package(t, ns, "taken").PackageStatus(), "taken-permissions")
	})
	if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(taken), &rbacv1.RoleBinding{}); err == nil {
		t.Error("the role of an administrator is bound to the account of the package")
	}
	role := &rbacv1.Role{}
	require.NoError(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(taken), role))
	if role.Rules[0].Verbs[0] != "*" || len(role.OwnerReferences) > 0 {
		t.Errorf("the role of an administrator was changed: %+v", role)
	}

	u.throughAccounts(t, refuses)
	u.acrossVersions(t, most, may)
	if changed := u.changesOutside(t, journal); len(changed) > 0 {
		t.Errorf("outside of the namespace was changed:\n%s", harness.Lines(changed))
	}
}

// throughAccounts installs packages as accounts that cannot write roles, or lack the rights in
// them: the ceiling does not extend the rights that a package's account can grant.
func (u *tenant) throughAccounts(t *testing.T, refuses func(name, typ, reason string, parts ...string)) {
	t.Helper()
	configMaps := rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{""}, Resources: []string{"configmaps"}}
	for name, rules := range map[string][]rbacv1.PolicyRule{
		"weak":    {configMaps},
		"writing": {configMaps, {Verbs: []string{"*"}, APIGroups: []string{rbacv1.GroupName}, Resources: []string{"rolebindings"}}, {Verbs: []string{"create", "patch", "delete"}, APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles"}}},
	} {
		u.env.Create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: name}})
		grant(t, u.env, u.namespace, name, rules...)
	}
	for account, want := range map[string]struct{ condition, reason, says string }{
		"weak":    {corev1alpha1.ConditionAuthorized, corev1alpha1.ReasonForbidden, "create rolebindings.rbac.authorization.k8s.io, roles.rbac.authorization.k8s.io"},
		"writing": {corev1alpha1.ConditionAvailable, corev1alpha1.ReasonObjectSetUnready, "may not grant rights that it does not have itself"},
	} {
		pkg := harness.Package(u.namespace, "as-"+account, asking(t, "as-"+account, getPods))
		pkg.Spec.ServiceAccountName = account
		u.create(t, pkg)
		harness.Eventually(t, harness.Patience, "what the account "+account+" lacks", func(context.Context) error {
			return conditionSays(u.env.Package(t, u.namespace, pkg.Name).PackageStatus(), want.says)
		})
		refuses(pkg.Name, want.condition, want.reason, want.says)
	}
}

// acrossVersions upgrades an installed package to a version that requires more rights: the
// installed objects stay until the ceiling contains the rights.
func (u *tenant) acrossVersions(t *testing.T, most *rbacv1.ClusterRole, may func(namespace string, want bool, resource, verb, name string)) {
	t.Helper()
	const secrets = "{verbs: [get], apiGroups: [''], resources: [secrets]}"
	env.SetImage(t, u.namespace, "early", asking(t, "early-two", getPods+", "+secrets))
	refusedWith(t, env.WaitCondition(t, u.namespace, "early", corev1alpha1.ConditionPermissionsGranted, "False").Message, ": get secrets.")
	may(u.namespace, false, "secrets", "get", "theirs")
	role := &rbacv1.Role{}
	require.NoError(t, env.Client.Get(t.Context(), client.ObjectKey{Namespace: u.namespace, Name: "early-permissions"}, role))
	if len(role.Rules) != 1 {
		t.Errorf("the role was changed: %v", role.Rules)
	}
	harness.Edit(t, env, most, func(r *rbacv1.ClusterRole) { r.Rules[2].ResourceNames = nil })
	env.WaitAvailable(t, u.namespace, "early")
	may(u.namespace, true, "secrets", "get", "theirs")
	env.WaitCondition(t, u.namespace, "early", corev1alpha1.ConditionPermissionsGranted, "True")
}
