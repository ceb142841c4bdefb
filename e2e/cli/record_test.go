package cli_test

import (
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// columns are the spaces between them.
var columns = regexp.MustCompile(` {2,}`)

// configMapIn is a ConfigMap of a package in a namespace.
func configMapIn(namespace, name string) string {
	return strings.Replace(harness.ConfigMap(name, "all", "new"), "metadata:\n", "metadata:\n  namespace: "+namespace+"\n", 1)
}

// A ClusterPackage adopts a Helm release in two namespaces in one step: no object is
// recreated, objects that the package lacks stay, and Helm has nothing left to uninstall.
func TestAdoptAHelmRelease(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	const ns, other = "helmed", "helmed-other"
	env.Namespace(t, ns)
	env.Namespace(t, other)
	here, there, left := legacy(t, env, ns, "here", "helm"), legacy(t, env, other, "there", "helm"), legacy(t, env, ns, "left", "helm")
	var manifest strings.Builder
	for _, o := range []string{"here", "left", "absent"} {
		manifest.WriteString("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + o + "}\n")
	}
	manifest.WriteString("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: there, namespace: " + other + "}\n")
	manifest.WriteString("---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: cluster-admin}\n")
	env.Create(t, harness.HelmRecord(ns, "web", 1, "superseded", ""))
	env.Create(t, harness.HelmRecord(ns, "web", 2, "deployed", manifest.String()))
	upgrading := harness.HelmRecord(ns, "web", 3, "pending-upgrade", manifest.String())
	env.Create(t, upgrading)
	ok(t, env, "install", env.Push(t, "helmed:v1", harness.Files{
		"manifest.yaml": harness.Manifest(ns, []string{"all"}, ""),
		"here.yaml":     configMapIn(ns, "here"), "absent.yaml": configMapIn(ns, "absent"), "there.yaml": configMapIn(other, "there"),
	}), ns, "--cluster", "--wait=false")
	adopt := []string{"adopt", "--from-helm", "web", "--into", "clusterpackage/" + ns, "-n", ns}
	fails(t, env, []string{"revision 3 of the release web of Helm is pending-upgrade: wait until Helm is done, or end it with helm rollback web -n helmed"}, append(adopt, "--yes")...)
	require.NoError(t, env.Client.Delete(t.Context(), upgrading))
	fails(t, env, []string{"Helm has no Secret of a deployed release web in namespace helmed-other"}, "adopt", "--from-helm", "web", "--into", "clusterpackage/"+ns, "-n", other)

	r := ok(t, env, append(adopt, "--dry-run")...)
	for _, text := range []string{
		"< ConfigMap helmed/here\n",
		"· ConfigMap helmed/left  stays unchanged: the package does not contain it, or it has to be named\n",
		"· ConfigMap helmed/absent  is not in the cluster: the package creates it\n",
		"Helm's record of the release web is deleted once the package has the objects, so that helm uninstall cannot delete them\n",
	} {
		if !strings.Contains(columns.ReplaceAllString(r.out, "  "), text) {
			t.Errorf("the plan lacks %q:\n%s", text, r.out)
		}
	}
	r = ok(t, env, append(adopt, "--yes")...)
	if !strings.HasSuffix(r.out, "clusterpackage helmed has adopted 2 objects\nHelm's record of the release web is deleted\n") {
		t.Errorf("adopt says:\n%s%s", r.out, r.err)
	}
	adopted := state{UID: here, Controller: "ClusterObjectDeployment " + ns, Value: "new", Managed: true}
	require.Equal(t, adopted, stateOf(t, env, ns, "here"), "the adopted object")
	adopted.UID = there
	require.Equal(t, adopted, stateOf(t, env, other, "there"), "the adopted object of the other namespace")
	require.Equal(t, state{UID: left, Value: "old", Extra: "x"}, stateOf(t, env, ns, "left"), "what the package lacks")
	secrets := &corev1.SecretList{}
	if err := env.Client.List(t.Context(), secrets, client.InNamespace(ns)); err != nil || len(secrets.Items) > 0 {
		t.Errorf("%d Secrets of Helm are left, %v", len(secrets.Items), err)
	}
}
