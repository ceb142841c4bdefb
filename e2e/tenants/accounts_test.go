package tenants_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

// If accounts are required, a Secret only leaves the namespace or reaches a package if the account
// can get it. Tokens of accounts never do. No status contains the content of servers or Secrets.
func TestSecretsOfAccounts(t *testing.T) {
	t.Parallel()
	lent := harness.Lend(t)
	lent.StartManager(t, "--pace=0.1", "--require-service-account", "--default-service-account=common", "--allow-local-sources", "--allow-local-targets")
	u := newTenant(t, lent, "")
	ns := u.namespace
	for name, data := range map[string]map[string]string{
		"db-admin": {"config": "{}"}, "mine": {"config": "{}"}, "login": {"username": "u", "password": "correct-horse-pw"},
		"quoted": {"token.yaml": "apiVersion: correct-horse-1\nkind: correct-horse-2\n", "e.json": `{"correct-horse-3":1,"correct-horse-3":2}`},
	} {
		lent.Create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, StringData: data})
	}
	for _, name := range []string{"app", "common", "power"} {
		lent.Create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}})
	}
	lent.Create(t, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "power-token", Annotations: map[string]string{corev1.ServiceAccountNameKey: "power"}},
		Type:       corev1.SecretTypeServiceAccountToken,
	})
	grant(t, lent, ns, "app", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"mine"}, Verbs: []string{"get"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"*"}})
	grant(t, lent, ns, "common", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"quoted", "power-token"}, Verbs: []string{"get"}})

	const inner = "what an inner server says\n"
	var reached, authorized atomic.Int32
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached.Add(1)
		if r.Header.Get("Authorization") != "" {
			authorized.Add(1)
		}
		_, _ = io.WriteString(w, inner)
	})
	server, target := httptest.NewServer(answer), httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { authorized.Add(1) }))
	t.Cleanup(server.Close)
	t.Cleanup(target.Close)
	image := lent.Push(t, "accounts:v1", harness.Files{"manifest.yaml": harness.Manifest("accounts", []string{"p"}, ""), "object.yaml": harness.ConfigMap("accounts", "p", "v1")})

	journal := lent.Journal(t)
	mine := ofAccount(harness.Package(ns, "mine", image), "mine")
	u.create(t, mine)
	lent.WaitAvailable(t, ns, "mine")
	questions, err := journal.Since(t.Context(), journal.From, sandbox.ByUser(harness.ManagerUser()), func(e sandbox.Entry) bool { return e.Object.Resource == "subjectaccessreviews" })
	require.NoError(t, err)
	if len(questions) > 2 {
		t.Errorf("%d questions for one installation", len(questions))
	}

	u.create(t, ofAccount(harness.Package(ns, "theirs", image), "db-admin"))
	refusedWith(t, lent.WaitCondition(t, ns, "theirs", corev1alpha1.ConditionUnpacked, "False").Message, "ServiceAccount "+ns+"/app may not get Secret "+ns+"/db-admin")

	u.create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "cluster"}, StringData: map[string]string{"value": kubeconfigFor(target.URL)}})
	remote := harness.Package(ns, "remote", image)
	remote.Spec.TargetRef = &corev1alpha1.TargetReference{KubeconfigSecretRef: corev1alpha1.KubeconfigSecretReference{Name: "cluster"}}
	u.create(t, remote)
	harness.Eventually(t, harness.Patience, "the target to be refused", func(context.Context) error {
		return conditionSays(lent.Package(t, ns, "remote").PackageStatus(), "ServiceAccount "+ns+"/common may not get Secret "+ns+"/cluster")
	})

	web := func(secret, sum string) corev1alpha1.RepositorySource {
		source := &corev1alpha1.RepositoryHTTPSource{URL: server.URL + "/x.yaml", SHA256: sum}
		if secret != "" {
			source.SecretRef = &corev1alpha1.LocalSecretReference{Name: secret}
		}
		return corev1alpha1.RepositorySource{HTTP: source}
	}
	quoted := corev1alpha1.RepositorySource{Inline: &corev1alpha1.RepositoryInlineSource{
		FilesFrom: []corev1alpha1.RepositoryFilesSource{{SecretRef: &corev1alpha1.LocalSecretReference{Name: "quoted"}}},
	}}
	digest := sha256.Sum256([]byte(inner))
	for name, test := range map[string]struct {
		source corev1alpha1.RepositorySource
		reason string
		parts  []string
	}{
		"login":  {web("login", ""), corev1alpha1.ReasonFetchFailed, []string{"ServiceAccount " + ns + "/common may not get Secret " + ns + "/login"}},
		"token":  {web("power-token", ""), corev1alpha1.ReasonFetchFailed, []string{"of the type kubernetes.io/service-account-token"}},
		"oracle": {web("", strings.Repeat("0", 64)), corev1alpha1.ReasonFetchFailed, []string{"the SHA-256 of the file differs from http.sha256"}},
		"quoted": {quoted, corev1alpha1.ReasonContentInvalid, []string{"the file comes from a Secret"}},
	} {
		u.create(t, repositoryOf(ns, name, test.source))
		refusedWith(t, waitRepository(t, lent, ns, name, test.reason).Message, test.parts...)
		repository := &corev1alpha1.PackageRepository{}
		require.NoError(t, lent.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name}, repository))
		status, err := json.Marshal(repository.Status)
		require.NoError(t, err)
		for _, secret := range []string{"correct-horse", hex.EncodeToString(digest[:8])} {
			if strings.Contains(string(status), secret) {
				t.Errorf("there is %q in %s", secret, status)
			}
		}
	}
	if reached.Load() == 0 || authorized.Load() > 0 {
		t.Errorf("the servers of the tenant got %d requests, %d with credentials that are not theirs", reached.Load(), authorized.Load())
	}
}

// ofAccount installs a Package as the account app with the configuration in a Secret.
func ofAccount(pkg *corev1alpha1.Package, secret string) *corev1alpha1.Package {
	pkg.Spec.ServiceAccountName = "app"
	pkg.Spec.ConfigFrom = []corev1alpha1.ValueSource{{SecretKeyRef: &corev1alpha1.SecretKeyReference{Name: secret, Key: "config"}}}
	return pkg
}

// grant gives an account rules in a namespace, and waits until the API server knows.
func grant(t *testing.T, e *harness.Env, namespace, account string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	e.Create(t, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}, Rules: rules})
	e.Create(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}},
	})
	first := authorizationv1.ResourceAttributes{Namespace: namespace, Verb: rules[0].Verbs[0], Group: rules[0].APIGroups[0], Resource: rules[0].Resources[0]}
	if len(rules[0].ResourceNames) > 0 {
		first.Name = rules[0].ResourceNames[0]
	}
	e.AwaitRight(t, "system:serviceaccount:"+namespace+":"+account, first)
}

// conditionSays returns an error unless a condition has a text.
func conditionSays(status *corev1alpha1.PackageStatus, text string) error {
	for _, c := range status.Conditions {
		if strings.Contains(c.Message, text) {
			return nil
		}
	}
	return fmt.Errorf("no condition has %q: %+v", text, status.Conditions)
}
