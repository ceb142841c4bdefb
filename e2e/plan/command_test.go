package plan_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/internal/cli/dryrun"
	"lockstep.run/lockstep/test/require"
)

// closedRegistry starts a registry that requires a password, and returns its address.
func closedRegistry(t *testing.T, user, password string) string {
	t.Helper()
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u, p, ok := r.BasicAuth(); !ok || u != user || p != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="closed"`)
			http.Error(w, `{"errors":[{"code":"UNAUTHORIZED"}]}`, http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// An image is pulled with the credentials that the Package names, if the user can read them.
func TestPlanWithPullSecrets(t *testing.T) {
	t.Parallel()
	env := shared(t)
	env.Namespace(t, "closed")
	host := closedRegistry(t, "robot", "hunter2hunter2")
	image := host + "/shop:v1"
	ref, err := name.ParseReference(image, name.Insecure)
	require.NoError(t, err)
	files := harness.Files{"manifest.yaml": harness.Manifest("shop", []string{"deploy"}, ""), "cm.yaml": harness.ConfigMap("shop", "deploy", "v1")}
	require.NoError(t, remote.Write(ref, harness.Image(t, files), remote.WithAuth(authn.FromConfig(authn.AuthConfig{Username: "robot", Password: "hunter2hunter2"}))))
	pkg := harness.Package("closed", "shop", image)
	pkg.Spec.Paused = true // the manager cannot reach this registry
	pkg.Spec.ImagePullSecrets = append(pkg.Spec.ImagePullSecrets, corev1alpha1.LocalSecretReference{Name: "robot"})
	env.Create(t, pkg)
	args := []string{"package/shop", "-n", "closed", "--insecure-registry", host}
	code, out, errOut := plan(t, env, args...)
	if code != 1 || !strings.Contains(errOut, "unusable spec.imagePullSecrets: Secret closed/robot does not exist") {
		t.Errorf("without the Secret: %d\n%s%s", code, out, errOut)
	}
	env.Create(t, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "closed", Name: "robot"}, Type: corev1.SecretTypeDockerConfigJson,
		StringData: map[string]string{corev1.DockerConfigJsonKey: fmt.Sprintf(`{"auths":{%q:{"username":"robot","password":"hunter2hunter2"}}}`, host)},
	})
	code, out, errOut = plan(t, env, args...)
	if code != 0 || !strings.Contains(out, "+ ConfigMap closed/shop") || !strings.Contains(out, "the package is paused") || strings.Contains(out+errOut, "hunter2") {
		t.Errorf("with it: %d\n%s%s", code, out, errOut)
	}
	env.Create(t, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "closed", Name: "some"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"packages", "objectdeployments", "configmaps"}, Verbs: []string{"*"}}}})
	env.Create(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "closed", Name: "some"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "some"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "ann"}},
	})
	awaitRight(t, env, "ann", "closed", "get", corev1alpha1.GroupVersion.Group, "packages")
	code, out, errOut = plan(t, env, append(args, "--as", "ann")...)
	if code != 1 || !strings.Contains(errOut, "unusable spec.imagePullSecrets: you may not read Secret closed/robot") {
		t.Errorf("by a user who cannot read it: %d\n%s%s", code, out, errOut)
	}
}

// awaitRight waits until the API server grants a right to a user.
func awaitRight(t *testing.T, env *harness.Env, user, namespace, verb, group, resource string) {
	t.Helper()
	env.AwaitRight(t, user, authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Group: group, Resource: resource})
}

// A folder is named as such, and not as the image that is installed.
func TestPlanOfAFolder(t *testing.T) {
	t.Parallel()
	env := shared(t)
	env.Namespace(t, "folder")
	files := harness.Files{"manifest.yaml": harness.Manifest("shop", []string{"deploy"}, ""), "cm.yaml": harness.ConfigMap("shop", "deploy", "v1")}
	env.Create(t, harness.Package("folder", "shop", env.Push(t, "folder:v1", files)))
	env.WaitAvailable(t, "folder", "shop")
	dir := t.TempDir()
	files["cm.yaml"] = harness.ConfigMap("shop", "deploy", "v2")
	for path, content := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, path), []byte(content), 0o600))
	}
	p := planOf(t, env, dir, "-n", "folder")
	if p.To.Image != "" || p.To.Folder != dir || p.Summary.Change != 1 {
		t.Errorf("%+v, %+v", p.To, p.Summary)
	}
	code, out, _ := plan(t, env, dir, "-n", "folder", "--exit-code")
	if code != 2 || !strings.Contains(out, "  folder   "+dir+"\n") || strings.Contains(out, "  image ") {
		t.Errorf("%d\n%s", code, out)
	}
	// A user without write access also gets a plan, which lists its unknowns.
	env.Create(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "plan-reader"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "plan-reader"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "bob"}},
	})
	env.Create(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "plan-reader"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list"}}}})
	files["role.yaml"] = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: shop, annotations: {package-operator.run/phase: deploy}}\nrules: [{apiGroups: [\"\"], resources: [secrets], verbs: [delete]}]\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "role.yaml"), []byte(files["role.yaml"]), 0o600))
	awaitRight(t, env, "bob", "folder", "list", "", "configmaps")
	p = planOf(t, env, dir, "-n", "folder", "--as", "bob")
	if p.Outcome != dryrun.OutcomeChanges || p.Summary.Change != 1 || p.Summary.Create != 1 || !strings.Contains(p.Phases[0].Changes[0].Unverified, "you may not write it") {
		t.Errorf("%s, %+v, %+v", p.Outcome, p.Refusals, p.Phases)
	}
	// The engine can grant rights that the user does not have, so the plan does not refuse the role
	// either.
	env.Create(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "folder", Name: "roles"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "plan-roles"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "bob"}},
	})
	env.Create(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "plan-roles"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles"}, Verbs: []string{"create", "patch"}}}})
	awaitRight(t, env, "bob", "folder", "create", rbacv1.GroupName, "roles")
	p = planOf(t, env, dir, "-n", "folder", "--as", "bob")
	if p.Outcome != dryrun.OutcomeChanges || !strings.Contains(p.Phases[0].Changes[1].Unverified, "you may not grant") {
		t.Errorf("%s, %+v, %+v", p.Outcome, p.Refusals, p.Phases)
	}
}
