package cli_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"lockstep.run/lockstep/e2e/harness"
)

// columns are the spaces between them.
var columns = regexp.MustCompile(` {2,}`)

// configMapIn is a ConfigMap of a package in a namespace.
func configMapIn(namespace, name string) string {
	return strings.Replace(harness.ConfigMap(name, "all", "new"), "metadata:\n", "metadata:\n  namespace: "+namespace+"\n", 1)
}

func namespaceObject(name, policy string) string {
	return "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + name + ", annotations: {package-operator.run/phase: namespaces" + policy + "}}\n"
}

// A release of Helm in two namespaces becomes that of a ClusterPackage in one step: no object is recreated, what the package
// lacks stays, its namespace is never deleted with it, and Helm has nothing left to uninstall.
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
	manifest.WriteString("---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: cluster-admin}\n---\napiVersion: v1\nkind: List\nitems:\n")
	for i := range 2000 { // none of which is read, as the package does not bring them
		fmt.Fprintf(&manifest, "- {apiVersion: g%d.example.com/v1, kind: K%d, metadata: {name: a}}\n", i, i)
	}
	env.Create(t, harness.HelmRecord(ns, "web", 1, "superseded", ""))
	env.Create(t, harness.HelmRecord(ns, "web", 2, "deployed", manifest.String()))
	upgrading := harness.HelmRecord(ns, "web", 3, "pending-upgrade", manifest.String())
	env.Create(t, upgrading)
	build := func(tag, policy string) string {
		return env.Push(t, "helmed:"+tag, harness.Files{
			"manifest.yaml": harness.Manifest(ns, []string{"namespaces", "all"}, ""), "namespace.yaml": namespaceObject(ns, policy),
			"here.yaml": configMapIn(ns, "here"), "absent.yaml": configMapIn(ns, "absent"), "there.yaml": configMapIn(other, "there"),
		})
	}
	ok(t, env, "install", build("v1", ""), ns, "--cluster", "--wait=false")
	adopt := []string{"adopt", "--release", "web", "--into", "clusterpackage/" + ns, "-n", ns}
	fails(t, env, []string{"revision 3 of the release web of Helm is pending-upgrade: wait until Helm is done, or end it by helm rollback web -n helmed"}, append(adopt, "--yes")...)
	if err := env.Client.Delete(t.Context(), upgrading); err != nil {
		t.Fatal(err)
	}
	fails(t, env, []string{"nothing was changed: the package brings Namespace helmed, which is not in Helm's record of the release web"}, append(adopt, "--yes")...)
	fails(t, env, []string{"Helm has no release web in namespace helmed-other"}, "adopt", "--release", "web", "--into", "clusterpackage/"+ns, "-n", other)
	ok(t, env, "install", build("v2", ", package-operator.run/deletion-policy: Keep"), ns, "--cluster", "--wait=false")

	r := ok(t, env, append(adopt, "--dry-run")...)
	for _, text := range []string{
		"< ConfigMap helmed/here  phase all  controller: none → ClusterObjectDeployment helmed  with the fields of helm\n",
		"· ConfigMap helmed/left  stays as it is: the package does not bring it\n",
		"· rbac.authorization.k8s.io ClusterRole cluster-admin  stays as it is: the package does not bring it\n",
		"1902 objects more that the package does not bring stay as they are\n",
		"· ConfigMap helmed/absent  is not in the cluster: the package creates it\n",
		"Helm's record of the release web is deleted once the package has the objects, so that helm uninstall deletes nothing\n",
	} {
		if !strings.Contains(columns.ReplaceAllString(r.out, "  "), text) {
			t.Errorf("the plan lacks %q:\n%s", text, r.out)
		}
	}
	r = ok(t, env, append(adopt, "--yes")...)
	if !strings.HasSuffix(r.out, "clusterpackage helmed has adopted 3 objects\nHelm's record of the release web is deleted\n") {
		t.Errorf("adopt says:\n%s%s", r.out, r.err)
	}
	adopted := state{UID: here, Controller: "ClusterObjectDeployment " + ns, Value: "new", Managed: true}
	if diff := cmp.Diff(adopted, stateOf(t, env, ns, "here")); diff != "" {
		t.Errorf("the adopted object (-want +got):\n%s", diff)
	}
	adopted.UID = there
	if diff := cmp.Diff(adopted, stateOf(t, env, other, "there")); diff != "" {
		t.Errorf("the adopted object of the other namespace (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(state{UID: left, Value: "old", Extra: "x"}, stateOf(t, env, ns, "left")); diff != "" {
		t.Errorf("what the package lacks (-want +got):\n%s", diff)
	}
	secrets := &corev1.SecretList{}
	if err := env.Client.List(t.Context(), secrets, client.InNamespace(ns)); err != nil || len(secrets.Items) > 0 {
		t.Errorf("%d Secrets of Helm are left, %v", len(secrets.Items), err)
	}
	ok(t, env, "delete", "clusterpackage/"+ns, "--yes")
	found := &corev1.Namespace{}
	if err := env.Client.Get(t.Context(), client.ObjectKey{Name: ns}, found); err != nil || found.DeletionTimestamp != nil {
		t.Errorf("after the package is deleted, its namespace is %v, %v", found.Status.Phase, err)
	}
}

// An app of kapp becomes a package: its own objects by their label, and not what controllers made of them.
func TestAdoptAKappApp(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	const ns, other, id = "kapped", "kapped-other", "1711111111111111111"
	env.Namespace(t, ns)
	env.Namespace(t, other)
	deployed := func(namespace, name, identity string) *corev1.ConfigMap {
		cm := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: name, Labels: map[string]string{"kapp.k14s.io/app": id},
				Annotations: map[string]string{"kapp.k14s.io/identity": "v1;" + identity + ";v1"},
			},
			Data: map[string]string{"value": "old"},
		}
		if err := env.Client.Create(t.Context(), cm, client.FieldOwner("kapp")); err != nil {
			t.Fatal(err)
		}
		return cm
	}
	here, there := deployed(ns, "here", ns+"//ConfigMap/here"), deployed(other, "there", other+"//ConfigMap/there")
	deployed(ns, "derived", ns+"//ConfigMap/here")
	in := func(name, label string, data map[string]string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Labels: map[string]string{label: "", "kapp.k14s.io/app-change-app": "web"}}, Data: data}
	}
	spec := `{"labelKey":"kapp.k14s.io/app","labelValue":"` + id + `"`
	record := in("web", "kapp.k14s.io/is-app", map[string]string{"spec": spec + "}"})
	env.Create(t, record)
	env.Create(t, in("web-change-x", "kapp.k14s.io/is-app-change", nil))
	ok(t, env, "install", env.Push(t, "kapped:v1", harness.Files{
		"manifest.yaml": harness.Manifest(ns, []string{"all"}, ""), "here.yaml": configMapIn(ns, "here"), "there.yaml": configMapIn(other, "there"),
	}), ns, "--cluster", "--wait=false")
	adopt := []string{"adopt", "--kapp-app", "web", "--into", "clusterpackage/" + ns, "-n", ns, "--yes"}
	fails(t, env, []string{"kapp's record of an app: it names no kinds of objects"}, adopt...)
	fails(t, env, []string{"kapp has no app other in namespace kapped"}, "adopt", "--kapp-app", "other", "--into", "clusterpackage/"+ns, "-n", ns)
	record.Data["spec"] = spec + `,"usedGKs":[{"Group":"","Kind":"ConfigMap"},{"Group":"gone.example.com","Kind":"Gone"}]}`
	if err := env.Client.Update(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	r := ok(t, env, adopt...)
	if !strings.HasSuffix(r.out, "clusterpackage kapped has adopted 2 objects\nkapp's record of the app web is deleted\n") || strings.Contains(r.out+r.err, "derived") {
		t.Errorf("adopt says:\n%s%s", r.out, r.err)
	}
	for _, cm := range []*corev1.ConfigMap{here, there} {
		uid := cm.UID
		if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(cm), cm); err != nil || cm.UID != uid || cm.Labels["kapp.k14s.io/app"] != "" || metav1.GetControllerOf(cm) == nil {
			t.Errorf("%s has the labels %v and the owners %v, %v", cm.Name, cm.Labels, cm.OwnerReferences, err)
		}
	}
	left := &corev1.ConfigMapList{}
	if err := env.Client.List(t.Context(), left, client.InNamespace(ns), client.HasLabels{"kapp.k14s.io/app-change-app"}); err != nil || len(left.Items) > 0 {
		t.Errorf("%d ConfigMaps of kapp are left, %v", len(left.Items), err)
	}
}
