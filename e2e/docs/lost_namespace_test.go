package docs_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// db is a package with a Secret. Its value comes from a Secret in the engine's namespace.
var db = harness.Files{
	"manifest.yaml": harness.Manifest("db", []string{"deploy"}, `  version: 1.0.0
  config:
    openAPIV3Schema:
      type: object
      required: [password]
      properties:
        password: {type: string}
`),
	"login.yaml.gotmpl": `apiVersion: v1
kind: Secret
metadata:
  name: db
  namespace: default
  annotations: {package-operator.run/phase: deploy}
stringData:
  password: {{ .config.password | quote }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: db
  namespace: default
  annotations: {package-operator.run/phase: deploy}
data: {size: small}
`,
}

// The engine's namespace is deleted with all of its objects, and the commands of the page restore
// the engine. Installed packages stay, and their objects are not written.
func TestLostNamespace(t *testing.T) {
	t.Parallel()
	env := harness.Lend(t)
	page := filepath.Join(root, "administrate", lostNamespace)
	r := &runner{shell: newShell(t, env), page: page}
	login := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: corev1alpha1.DefaultNamespace, Name: "db-login"}, StringData: map[string]string{"config": `{"password": "correct-horse"}`},
	}
	r.write(t, filepath.Join(r.dir, "backup.yaml"), fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {namespace: %s, name: %s}\nstringData: {config: '%s'}\n", login.Namespace, login.Name, login.StringData["config"]), 0o600)
	if out, code := r.run(t, "kubectl apply --server-side --force-conflicts -k config"); code != 0 { // as the first installation did
		t.Fatal(strings.Join(out, "\n"))
	}
	manager := env.StartManager(t)
	env.Create(t, login)
	pkg := harness.ClusterPackage("db", env.Push(t, "db:v1", db))
	pkg.Spec.ConfigFrom = []corev1alpha1.ValueSource{{SecretKeyRef: &corev1alpha1.SecretKeyReference{Name: login.Name, Key: "config"}}}
	env.Create(t, pkg)
	env.WaitAvailable(t, "", "db")
	before := versions(t, env)
	require.NoError(t, env.Client.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: corev1alpha1.DefaultNamespace}}))
	<-manager.Done() // it cannot renew its Lease

	for _, b := range blocks(t, page) {
		r.block(t, b)
		if strings.Contains(b.text, "kubectl apply --server-side -k config\n") {
			env.RenewToken(t)
			env.StartManager(t) // the sandbox has no node for config's Deployment
		}
	}
	r.save(t)
	t.Logf("what the commands printed:\n%s", strings.Join(r.transcript, "\n"))
	if after := versions(t, env); after != before {
		t.Errorf("what is installed is %s, and was %s", after, before)
	}
	require.NoError(t, env.Client.Delete(t.Context(), pkg))
	env.WaitGone(t, harness.Patience, pkg)
	out, code := r.run(t, "kubectl delete -k config/manager --ignore-not-found --wait=false")
	if code != 0 {
		t.Errorf("config/manager is not removed: %s", strings.Join(out, "\n"))
	}
}

// versions returns the UIDs and versions of the package's objects. For the Secret it returns the
// content instead of the version, because a new revision of the same content writes it once.
func versions(t *testing.T, env *harness.Env) string {
	t.Helper()
	secret, settings := &corev1.Secret{}, &corev1.ConfigMap{}
	for _, obj := range []client.Object{secret, settings} {
		harness.Eventually(t, harness.Patience, "the objects of the package", func(ctx context.Context) error {
			return env.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "db"}, obj)
		})
	}
	return fmt.Sprintf("Secret %s %s, ConfigMap %s %s", secret.UID, secret.Data["password"], settings.UID, settings.ResourceVersion)
}
