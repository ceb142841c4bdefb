package docs_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// helmGuide is the page that is run for several charts.
const helmGuide = "migrate-from-helm.md"

// charts of the guide. Its sections name the first two; the third takes the commands of the second.
var charts = []helmChart{
	{release: "web", section: "A release in one namespace", namespaces: []string{"store"}},
	{release: "metrics", section: "A release in several namespaces", namespaces: []string{"monitoring", "kube-system"}},
	{release: "shop", section: "A release in several namespaces", namespaces: []string{"retail", "shop-jobs"}, replace: strings.NewReplacer("metrics", "shop", "monitoring", "retail", "interval=30s", "currency=USD", "adopt --from-helm", "adopt namespace/shop-jobs --from-helm")},
}

type helmChart struct {
	release    string
	section    string
	namespaces []string
	replace    *strings.Replacer
}

// The commands of the guide turn a chart in one namespace, a chart in two namespaces and a chart
// with its own Namespace and definitions into packages and back. No object is recreated and no pod
// is restarted.
func TestHelmGuide(t *testing.T) {
	if !harness.Deep() {
		t.Skip("LOCKSTEP_DEEP=1 compiles Helm; e2e/cli TestAdoptAHelmRelease moves a release without it")
	}
	t.Parallel()
	env := harness.Shared(t)
	page := filepath.Join(folder, "..", helmGuide)
	helm := harness.Helm(t)
	for _, chart := range charts {
		t.Run(chart.release, func(t *testing.T) {
			t.Parallel()
			r := &runner{shell: newShell(t, env), page: page}
			require.NoError(t, os.Symlink(helm, filepath.Join(filepath.Dir(r.dir), "bin", "helm")))
			copyCharts(t, filepath.Join(r.dir, "charts"))
			var before map[string]types.UID
			for _, b := range sectionBlocks(t, page, chart.section) {
				if chart.replace != nil {
					b.text = chart.replace.Replace(b.text)
				}
				r.block(t, b)
				if before == nil {
					before = rolledOut(t, env, chart.release, chart.namespaces)
					continue
				}
				now := uids(t, env, chart.release, chart.namespaces)
				for name, uid := range before {
					if now[name] != uid {
						t.Errorf("%s: %s is another object than before, %q and not %q", b, name, now[name], uid)
					}
				}
			}
			if chart.replace == nil {
				r.save(t)
			}
			t.Logf("%d objects stayed: %s", len(before), strings.Join(slices.Sorted(maps.Keys(before)), ", "))
			t.Logf("what the commands printed:\n%s", strings.Join(r.transcript, "\n"))
			if output, code := r.run(t, "helm uninstall "+chart.release+" -n "+chart.namespaces[0]); code != 0 {
				t.Errorf("Helm does not have the release again: %s", strings.Join(output, "\n"))
			}
		})
	}
}

// sectionBlocks returns the blocks below a heading of the page.
func sectionBlocks(t *testing.T, page, heading string) []block {
	t.Helper()
	data, err := os.ReadFile(page)
	require.NoError(t, err)
	lines := strings.Split(string(data), "\n")
	first := slices.Index(lines, "## "+heading)
	if first < 0 {
		t.Fatalf("%s has no section %q", page, heading)
	}
	last := slices.IndexFunc(lines[first+1:], func(line string) bool { return strings.HasPrefix(line, "## ") }) + first + 1
	return slices.DeleteFunc(blocks(t, page), func(b block) bool { return b.first < first || b.first > last })
}

// isHelms reports whether TestHelmGuide runs a block.
func isHelms(t *testing.T, b block) bool {
	t.Helper()
	return filepath.Base(b.page) == helmGuide && slices.ContainsFunc(charts, func(c helmChart) bool {
		return slices.Contains(sectionBlocks(t, b.page, c.section), b)
	})
}

// uids returns the objects of a release and the pods made for them.
func uids(t *testing.T, env *harness.Env, release string, namespaces []string) map[string]types.UID {
	t.Helper()
	found := map[string]types.UID{}
	list := func(kind string, list client.ObjectList, namespace string) {
		require.NoError(t, env.Client.List(t.Context(), list, client.InNamespace(namespace)))
		data, err := toItems(list)
		require.NoError(t, err)
		for _, o := range data {
			if name := o.GetName(); strings.HasPrefix(name, release) || kind == "Namespace" && slices.Contains(namespaces, name) || strings.HasSuffix(name, "guide.example.com") && release == "shop" {
				found[strings.TrimPrefix(namespace+"/", "/")+kind+" "+name] = o.GetUID()
			}
		}
	}
	for _, ns := range namespaces {
		list("ConfigMap", &corev1.ConfigMapList{}, ns)
		list("Service", &corev1.ServiceList{}, ns)
		list("ServiceAccount", &corev1.ServiceAccountList{}, ns)
		list("RoleBinding", &rbacv1.RoleBindingList{}, ns)
		list("Deployment", &appsv1.DeploymentList{}, ns)
		list("ReplicaSet", &appsv1.ReplicaSetList{}, ns)
		list("StatefulSet", &appsv1.StatefulSetList{}, ns)
		list("Pod", &corev1.PodList{}, ns)
	}
	list("Namespace", &corev1.NamespaceList{}, "")
	list("ClusterRole", &rbacv1.ClusterRoleList{}, "")
	list("ClusterRoleBinding", &rbacv1.ClusterRoleBindingList{}, "")
	list("CustomResourceDefinition", &apiextensionsv1.CustomResourceDefinitionList{}, "")
	return found
}

func toItems(list client.ObjectList) ([]*unstructured.Unstructured, error) {
	items, err := meta.ExtractList(list)
	var out []*unstructured.Unstructured
	for _, item := range items {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(item)
		if err != nil {
			return nil, err
		}
		out = append(out, &unstructured.Unstructured{Object: content})
	}
	return out, err
}

// rolledOut waits for the pods of a release, and returns its objects.
func rolledOut(t *testing.T, env *harness.Env, release string, namespaces []string) map[string]types.UID {
	t.Helper()
	want := map[string]int{"web": 2}[release]
	harness.Eventually(t, harness.Patience, "the pods of "+release, func(ctx context.Context) error {
		pods := &corev1.PodList{}
		if err := env.Client.List(ctx, pods, client.InNamespace(namespaces[0])); err != nil {
			return err
		}
		ready := 0
		for i := range pods.Items {
			if pods.Items[i].Status.Phase == corev1.PodRunning && strings.HasPrefix(pods.Items[i].Name, release) {
				ready++
			}
		}
		if ready < max(want, 1) {
			return fmt.Errorf("%d of them run", ready)
		}
		return nil
	})
	return uids(t, env, release, namespaces)
}

func copyCharts(t *testing.T, to string) {
	t.Helper()
	require.NoError(t, os.CopyFS(to, os.DirFS("testdata/charts")))
}
