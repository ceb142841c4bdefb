package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

// allVerbs are the rights that the objects of a package take.
var allVerbs = []string{"create", "patch", "delete"}

// account creates a ServiceAccount with some verbs on ConfigMaps.
func account(t *testing.T, ns, name string, verbs ...string) string {
	t.Helper()
	env.Create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}})
	env.Create(t, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}})
	env.Create(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: ns, Name: name}},
	})
	grant(t, ns, name, verbs...)
	return user(ns, name)
}

func user(ns, name string) string { return "system:serviceaccount:" + ns + ":" + name }

// grant replaces the rights of an account, and waits until they hold.
func grant(t *testing.T, ns, name string, verbs ...string) {
	t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	require.NoError(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(role), role))
	role.Rules = nil
	if len(verbs) > 0 {
		role.Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: verbs}}
	}
	require.NoError(t, env.Client.Update(t.Context(), role))
	for _, verb := range allVerbs {
		harness.Eventually(t, patience, "the rights of "+name+" to hold", func(ctx context.Context) error {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: user(ns, name), Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + ns},
				ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: ns, Verb: verb, Resource: "configmaps"},
			}}
			if err := env.Client.Create(ctx, review); err != nil {
				return err
			}
			if want := slices.Contains(verbs, verb); review.Status.Allowed != want {
				return fmt.Errorf("%s is allowed: %t, want %t", verb, !want, want)
			}
			return nil
		})
	}
}

// as makes the deployment roll its objects out as an account.
func as(dep *corev1alpha1.ObjectDeployment, account string) *corev1alpha1.ObjectDeployment {
	dep.Spec.Template.Spec.ServiceAccountName = account
	return dep
}

// retry ends the backoff of a failed object.
func retry(t *testing.T, obj client.Object, value string) {
	t.Helper()
	meddle(t, obj, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, corev1alpha1.RetryAnnotation, value))
}

// attempts accepts requests that change an object, or try to.
func attempts() sandbox.Filter { return sandbox.ByVerb("create", "update", "patch", "delete") }

// notAs returns the requests for ConfigMaps that are not made as one of the users.
func notAs(entries []sandbox.Entry, users ...string) []sandbox.Entry {
	return slices.DeleteFunc(slices.Clone(entries), func(e sandbox.Entry) bool { return slices.Contains(users, e.ImpersonatedUser) })
}

// Each request that can change an object is made as the account of the revision: create, adoption,
// change, migration, correction, recreation, dry runs and removal.
func TestEveryWriteIsMadeAsTheAccount(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	first, second := account(t, ns, "first", allVerbs...), account(t, ns, "second", allVerbs...)
	frozen := func(value string) corev1alpha1.ObjectSetObject {
		return raw(fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"frozen","annotations":{%q:%q}},"immutable":true,"data":{"value":%q}}`,
			corev1alpha1.OnImmutableAnnotation, corev1alpha1.OnImmutableRecreate, value))
	}
	require.NoError(t, env.Client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "found"}, Data: map[string]string{"value": "v0"}}))
	j := env.Journal(t)
	dep := install(t, as(deployment(ns,
		phase("one", configMap("kept", "v1"), configMap("found", "v1", collision(corev1alpha1.CollisionProtectionIfNoController)), frozen("v1")),
		phase("two", configMap("changed", "v1"), configMap("dropped", "v1")),
	), "first"))
	edit(t, ns, "kept", `{"data":{"value":"theirs"}}`)
	awaitValue(t, ns, "kept", "v1")
	change(t, dep, func(d *corev1alpha1.ObjectDeployment) {
		d.Spec.Template.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{
			phase("one", configMap("kept", "v1"), configMap("found", "v1", collision(corev1alpha1.CollisionProtectionIfNoController)), frozen("v2")),
			phase("two", configMap("changed", "v2")),
		}
	})
	awaitRollout(t, dep)
	harness.Eventually(t, patience, "the dropped object to be deleted", func(ctx context.Context) error {
		return gone(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "dropped"}})
	})
	env.Settle(t, ns)
	entries := j.Requests(t, ns, attempts(), sandbox.ByResource("configmaps"))
	if wrong := notAs(entries, first); len(wrong) > 0 {
		t.Errorf("not as the account:%s", harness.Lines(wrong))
	}
	kinds := map[string]bool{}
	for _, e := range entries {
		kinds[fmt.Sprintf("%s dry=%t", e.Verb, e.DryRun)] = true
	}
	for _, kind := range []string{"create dry=false", "patch dry=false", "patch dry=true", "delete dry=false"} {
		if !kinds[kind] {
			t.Errorf("%s was not tested:%s", kind, harness.Lines(entries))
		}
	}

	j = env.Journal(t)
	change(t, dep, func(d *corev1alpha1.ObjectDeployment) { as(d, "second") })
	awaitRollout(t, dep)
	env.Settle(t, ns)
	if writes := j.Requests(t, ns, attempts(), sandbox.ByResource("configmaps")); len(writes) > 0 {
		t.Errorf("another account alone rewrites objects:%s", harness.Lines(writes))
	}
	edit(t, ns, "kept", `{"data":{"value":"theirs"}}`)
	awaitValue(t, ns, "kept", "v1")
	require.NoError(t, env.Client.Delete(t.Context(), dep))
	env.WaitGone(t, patience, dep)
	entries = j.Requests(t, ns, attempts(), sandbox.ByResource("configmaps"))
	if wrong := notAs(entries, second); len(wrong) > 0 || len(entries) < 5 {
		t.Errorf("not as the new account:%s\nof%s", harness.Lines(wrong), harness.Lines(entries))
	}
	absent(t, ns, "kept")
}

// If the account does not exist, no object is written, although rights are bound to its name. The
// status names the account, and the rollout continues automatically when it exists.
func TestMissingAccount(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	account(t, ns, "deployer", allVerbs...)
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "deployer"}}
	require.NoError(t, env.Client.Delete(t.Context(), sa))
	j := env.Journal(t)
	dep := as(deployment(ns, phase("one", configMap("object", "v1"))), "deployer")
	env.Create(t, dep)
	await(t, currentSetOf(t, dep), "to name the account", func(s *corev1alpha1.ObjectSet) error {
		return errors.Join(
			harness.HasCondition(s, corev1alpha1.ConditionAvailable, metav1.ConditionFalse, corev1alpha1.ReasonServiceAccountMissing,
				"ServiceAccount "+ns+"/deployer does not exist: create it"),
			harness.HasCondition(s, corev1alpha1.ConditionAuthorized, metav1.ConditionFalse, corev1alpha1.ReasonServiceAccountMissing, "create it"))
	})
	if writes := j.Requests(t, ns, attempts(), sandbox.ByResource("configmaps")); len(writes) > 0 {
		t.Errorf("written without the account:%s", harness.Lines(writes))
	}
	env.Create(t, &corev1.ServiceAccount{ObjectMeta: sa.ObjectMeta})
	awaitRollout(t, dep)
}

// An account cannot grant rights that it does not have, although the manager could.
func TestAccountCannotEscalate(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	account(t, ns, "deployer", allVerbs...)
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "deployer"}}
	require.NoError(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(role), role))
	role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles"}, Verbs: allVerbs})
	require.NoError(t, env.Client.Update(t.Context(), role))
	dep := as(deployment(ns, phase("one",
		raw(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"more"},"rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}]}`),
	)), "deployer")
	env.Create(t, dep)
	await(t, currentSetOf(t, dep), "to be refused", func(s *corev1alpha1.ObjectSet) error {
		err := harness.HasCondition(s, corev1alpha1.ConditionAvailable, metav1.ConditionFalse, corev1alpha1.ReasonForbidden, "may not grant rights that it does not have itself")
		if err != nil {
			retry(t, dep, fmt.Sprint(len(err.Error()))) // the role might not be in effect yet
		}
		return err
	})
	if err := env.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "more"}, role); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the Role was written: %v", err)
	}
}

// A deployment can be deleted after its account and the account's rights: releasing the objects
// requires no rights.
func TestOrphanWithoutRights(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	account(t, ns, "deployer", allVerbs...)
	dep := install(t, as(deployment(ns, phase("one", configMap("object", "v1"))), "deployer"))
	grant(t, ns, "deployer")
	require.NoError(t, env.Client.Delete(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "deployer"}}))
	require.NoError(t, env.Client.Delete(t.Context(), dep))
	await(t, dep, "to name the account", func(d *corev1alpha1.ObjectDeployment) error {
		c := meta.FindStatusCondition(d.Status.Conditions, corev1alpha1.ConditionTeardownForbidden)
		if c == nil {
			return fmt.Errorf("it reports %+v", d.Status.Conditions)
		}
		return nil
	})
	meddle(t, dep, fmt.Sprintf(`{"metadata":{"annotations":{%q:"true"}}}`, corev1alpha1.OrphanedAnnotation))
	env.WaitGone(t, patience, dep)
	if object := get(t, ns, "object"); len(object.OwnerReferences) > 0 || object.Labels[corev1alpha1.CacheLabel] != "" || object.Data["value"] != "v1" {
		t.Errorf("the object was not released: %+v", object.ObjectMeta)
	}
}

// currentSetOf waits for the only set of a deployment.
func currentSetOf(t *testing.T, dep *corev1alpha1.ObjectDeployment) *corev1alpha1.ObjectSet {
	t.Helper()
	harness.Eventually(t, patience, "a set", func(ctx context.Context) error {
		sets := &corev1alpha1.ObjectSetList{}
		if err := env.Client.List(ctx, sets, client.InNamespace(dep.Namespace)); err != nil || len(sets.Items) == 1 {
			return err
		}
		return errors.New("there is none")
	})
	return currentSet(t, dep)
}
