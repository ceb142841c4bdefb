package tenants_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

// tenant is a user with rights in only one namespace.
type tenant struct {
	client.Client
	env       *harness.Env
	namespace string
}

// newTenant returns a user with a new namespace, which is named after the test and suffix. The user
// has the ClusterRoles lockstep-admin and edit there, more ClusterRoles if an attack needs them,
// and no other rights.
func newTenant(t *testing.T, e *harness.Env, suffix string, more ...string) *tenant {
	t.Helper()
	ns := namespaceOf(t, suffix)
	e.Namespace(t, ns)
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "tenant"}}
	e.Create(t, sa)
	for _, role := range append([]string{"lockstep-admin", "edit"}, more...) {
		e.Create(t, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: sa.Name}},
		})
	}
	config := rest.AnonymousClientConfig(e.Config())
	config.BearerToken = harness.Token(t, e.Client, ns, sa.Name)
	c, err := client.New(config, client.Options{Scheme: e.Client.Scheme()})
	require.NoError(t, err)
	return &tenant{Client: c, env: e, namespace: ns}
}

// create creates objects as the tenant, once the API server knows the rights.
func (u *tenant) create(t *testing.T, objs ...client.Object) {
	t.Helper()
	for _, obj := range objs {
		harness.Eventually(t, harness.Patience, "the tenant's rights", func(ctx context.Context) error { return u.Create(ctx, obj) })
	}
}

// changesOutside returns the manager's requests since the start of the journal that changed, or
// tried to change, cluster-scoped objects or objects in kube-system. It omits the engine's
// cluster-scoped kinds and definitions, because other tests install packages as administrators.
// It also omits reviews of tokens and rights, which are created without changing the cluster.
func (u *tenant) changesOutside(t *testing.T, j *harness.Journal) []sandbox.Entry {
	t.Helper()
	entries, err := j.Since(t.Context(), j.From, sandbox.ByUser(harness.ManagerUser()), func(e sandbox.Entry) bool {
		return !slices.Contains([]string{"customresourcedefinitions", "tokenreviews", "subjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews"}, e.Object.Resource) &&
			slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, e.Verb) &&
			(e.Object.Namespace == metav1.NamespaceSystem || e.Object.Namespace == "" && e.Object.Group != corev1alpha1.GroupName)
	})
	require.NoError(t, err)
	return entries
}

func namespaceOf(t *testing.T, suffix string) string {
	t.Helper()
	return strings.ToLower(strings.NewReplacer("Test", "", "/", "-", "_", "-").Replace(t.Name())) + suffix
}
