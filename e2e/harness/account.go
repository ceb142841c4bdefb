package harness

import (
	"encoding/base64"
	"fmt"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"lockstep.run/lockstep/test/require"
)

// Token returns a token of an existing ServiceAccount that is valid for a day.
func Token(tb testing.TB, c client.Client, namespace, name string) string {
	tb.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(86400))}}
	require.NoError(tb, c.SubResource("token").Create(tb.Context(), account, request))
	return request.Status.Token
}

// Account creates a ServiceAccount with a ClusterRole in all namespaces, and returns a token.
func Account(tb testing.TB, c client.Client, namespace, name, role string) string {
	tb.Helper()
	require.NoError(tb, c.Create(tb.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}))
	require.NoError(tb, c.Create(tb.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: namespace + "-" + name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
	}))
	return Token(tb, c, namespace, name)
}

// Kubeconfig returns a kubeconfig of a server and its authority; user has the fields of the user.
func Kubeconfig(server string, authority []byte, user string) string {
	return fmt.Sprintf(`{current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}],
clusters: [{name: a, cluster: {server: %q, certificate-authority-data: %s}}], users: [{name: a, user: {%s}}]}`,
		server, base64.StdEncoding.EncodeToString(authority), user)
}
