package movein_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

// patience is how long a test waits for a condition.
const patience = harness.Patience

// packages is how many installations are taken over.
func packages() int {
	if harness.Deep() {
		return 50
	}
	return 3
}

// A cluster migrates from Package Operator and back. The engine takes the packages over with one
// patch of each deployment, and without any write to their objects. Then it corrects drift, an
// upgrade removes fields without restarting pods, and Package Operator takes back the released
// packages. A deletion removes all objects, or only the packages.
func TestMoveIn(t *testing.T) {
	all := installMany(t, packages())
	own := installOwn(t)
	env.Create(t, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1alpha1.DefaultNamespace, Name: corev1alpha1.LeaderElectionLease}})
	hold(t, "lockstep-manager-0_1", 15)
	env.WaitCollector(t)
	adoptEngine(t, own)

	objects := resourceVersions(t, all)
	journal := env.Journal(t)
	manager := waitForLease(t)
	for _, i := range all {
		env.WaitAvailableWithin(t, patience, i.namespace, i.name)
	}
	requests := journal.Rest(t, namespacesOf(all)...)
	for _, i := range all {
		i.tookOver(t, journal)
	}
	require.Equal(t, objects, resourceVersions(t, all), "objects were written")
	t.Logf("writes that took over %d packages: %v", len(all), harness.Tally(written(requests)))

	all[0].repairs(t)
	all[2].losesItsSet(t)
	for k, i := range all {
		if k != 2 {
			i.upgrades(t)
		}
	}
	before := liveOf(t, all)
	releaseEngine(t, manager, all)
	for _, i := range all {
		i.takesBack(t)
		i.isSame(t, before[i.at])
	}

	// A new manager takes over all packages once more.
	objects = resourceVersions(t, all)
	env.StartManager(t)
	for _, i := range all {
		env.WaitAvailableWithin(t, patience, i.namespace, i.name)
	}
	env.Settle(t, namespacesOf(all)...)
	require.Equal(t, objects, resourceVersions(t, all), "objects were written")
	for k, i := range all {
		if k == 1 {
			i.orphans(t)
		} else {
			i.deletes(t)
		}
	}
}

// resourceVersions returns the resource versions of the objects of installations.
func resourceVersions(t *testing.T, all []*installation) map[string]string {
	t.Helper()
	versions := map[string]string{}
	for _, i := range all {
		for name, u := range i.live(t) {
			if u.GetKind() != "Deployment" { // its status is written all the time
				versions[i.at+"/"+name] = u.GetResourceVersion()
			}
		}
	}
	return versions
}

func liveOf(t *testing.T, all []*installation) map[string]map[string]*unstructured.Unstructured {
	t.Helper()
	live := map[string]map[string]*unstructured.Unstructured{}
	for _, i := range all {
		live[i.at] = i.live(t)
	}
	return live
}

// isSame checks that the objects are the same as before, apart from their metadata.
func (i *installation) isSame(t *testing.T, before map[string]*unstructured.Unstructured) {
	t.Helper()
	for name, live := range i.live(t) {
		for _, field := range []string{"spec", "data"} {
			if diff := cmp.Diff(before[name].Object[field], live.Object[field]); live.GetUID() != before[name].GetUID() || diff != "" {
				t.Errorf("%s: %s is another one, or has another %s: %s", i.at, name, field, diff)
			}
		}
	}
}

func namespacesOf(all []*installation) (names []string) {
	for _, i := range all {
		names = append(names, i.at)
	}
	return names
}

// written are the requests that change something.
func written(entries []sandbox.Entry) (writes []sandbox.Entry) {
	for _, e := range entries {
		if e.Verb != "get" && e.Verb != "list" && !e.DryRun {
			writes = append(writes, e)
		}
	}
	return writes
}

// tookOver checks the manager's writes since it started.
func (i *installation) tookOver(t *testing.T, journal *harness.Journal) {
	t.Helper()
	requests := journal.Requests(t, i.at)
	if i.scope == corev1alpha1.ScopeCluster {
		requests = append(requests, journal.Requests(t, "", func(e sandbox.Entry) bool { return strings.HasPrefix(e.Object.Name, i.name) })...)
	}
	prefix := strings.ToLower(strings.TrimSuffix(i.scope.Kind("Package"), "Package"))
	made := harness.Tally(written(requests))
	// If a rollout takes longer than a second, the deployment and its package report progress.
	allowed := map[string]int{
		"patch " + prefix + "objectdeployments": 1, "update " + prefix + "objectdeployments/status": 2, "update " + prefix + "objectsets/status": 2,
		"update " + prefix + "packages/status": 1 + made["update "+prefix+"objectdeployments/status"],
	}
	for request, n := range made {
		if n > allowed[request] {
			t.Errorf("%s: %d times %s", i.at, n, request)
		}
	}
	for name, live := range i.live(t) {
		for _, before := range i.objects {
			if before.GetKind()+"/"+before.GetName() == name && before.GetUID() != live.GetUID() {
				t.Errorf("%s: %s was recreated", i.at, name)
			}
		}
		if ref := metav1.GetControllerOf(live); ref == nil || ref.Kind != i.scope.Kind("ObjectSet") {
			t.Errorf("%s: %s is controlled by %v", i.at, name, ref)
		}
	}
}

func (i *installation) settings(t *testing.T) *corev1.ConfigMap {
	t.Helper()
	cm := &corev1.ConfigMap{}
	require.NoError(t, env.Client.Get(t.Context(), types.NamespacedName{Namespace: i.at, Name: "settings"}, cm))
	return cm
}

// repairs checks that drift is corrected.
func (i *installation) repairs(t *testing.T) {
	t.Helper()
	harness.Edit(t, env, i.settings(t), func(cm *corev1.ConfigMap) { cm.Data["value"] = "edited" })
	harness.Eventually(t, patience, "the value to be put back", func(context.Context) error {
		if is := i.settings(t).Data["value"]; is != "v1" {
			return fmt.Errorf("it is %q", is)
		}
		return nil
	})
}

// losesItsSet checks that the objects outlive the ObjectSet that controls them.
func (i *installation) losesItsSet(t *testing.T) {
	t.Helper()
	before := i.live(t)
	set := i.sets[len(i.sets)-1]
	require.NoError(t, env.Client.Delete(t.Context(), set))
	env.WaitGone(t, patience, set)
	env.WaitAvailableWithin(t, patience, i.namespace, i.name)
	for name, live := range i.live(t) {
		if ref := metav1.GetControllerOf(live); live.GetUID() != before[name].GetUID() || ref == nil || ref.Kind != i.scope.Kind("ObjectDeployment") {
			t.Errorf("%s: %s is another one, or controlled by %v", i.at, name, ref)
		}
	}
}

// upgrades checks an upgrade: a changed, a removed and an added field or object, and pods
// that keep running.
func (i *installation) upgrades(t *testing.T) {
	t.Helper()
	before, pods := i.live(t), i.pods(t)
	in := ""
	if i.scope == corev1alpha1.ScopeCluster {
		in = i.at
	}
	files := app("v2", "", in)
	files["added.yaml"] = strings.Replace(harness.ConfigMap("added", "deploy", "v2"), "metadata:\n", "metadata:\n  namespace: "+i.at+"\n", 1)
	env.SetImage(t, i.namespace, i.name, env.Push(t, "movein-"+i.name+":v2", files))
	env.WaitAvailableWithin(t, patience, i.namespace, i.name)
	if data := i.settings(t).Data; data["value"] != "v2" || data["leaves"] != "" {
		t.Errorf("%s: the settings are %v", i.at, data)
	}
	for name, live := range i.live(t) {
		if diff := cmp.Diff(before[name].Object["spec"], live.Object["spec"]); live.GetUID() != before[name].GetUID() || diff != "" {
			t.Errorf("%s: %s is another one, or has another spec: %s", i.at, name, diff)
		}
	}
	if after := i.pods(t); len(pods) != 1 || len(after) != 1 || pods[0].UID != after[0].UID {
		t.Errorf("%s: %d pods became %d, or others", i.at, len(pods), len(after))
	}
}

func (i *installation) pods(t *testing.T) []corev1.Pod {
	t.Helper()
	list := &corev1.PodList{}
	require.NoError(t, env.Client.List(t.Context(), list, client.InNamespace(i.at)))
	return list.Items
}

func (i *installation) deletes(t *testing.T) {
	t.Helper()
	pkg := env.Package(t, i.namespace, i.name)
	require.NoError(t, env.Client.Delete(t.Context(), pkg))
	env.WaitGone(t, patience, pkg)
	for _, obj := range []client.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: i.at, Name: "settings"}},
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: i.at, Name: "web"}}, i.deployment, i.sets[len(i.sets)-1],
	} {
		env.WaitGone(t, patience, obj)
	}
}

// orphans checks that a Package deleted with deletionPolicy Orphan leaves its objects without an
// owner, and no ObjectSet.
func (i *installation) orphans(t *testing.T) {
	t.Helper()
	before := i.live(t)
	pkg := env.Package(t, i.namespace, i.name)
	old := pkg.DeepCopyObject().(client.Object)
	pkg.PackageSpec().DeletionPolicy = corev1alpha1.DeletionPolicyOrphan
	require.NoError(t, env.Client.Patch(t.Context(), pkg, client.MergeFrom(old)))
	require.NoError(t, env.Client.Delete(t.Context(), pkg))
	for _, obj := range []client.Object{pkg, i.deployment, i.sets[len(i.sets)-1]} {
		env.WaitGone(t, patience, obj)
	}
	for name, live := range i.live(t) {
		if live.GetUID() != before[name].GetUID() || live.GetDeletionTimestamp() != nil || len(live.GetOwnerReferences()) > 0 {
			t.Errorf("%s: %s is another one, is being deleted, or is owned by %v", i.at, name, live.GetOwnerReferences())
		}
	}
	harness.Eventually(t, patience, "the ObjectSets of "+i.at+" to be gone", func(ctx context.Context) error {
		list := i.scope.NewObjectSetList()
		if err := env.Client.List(ctx, list, client.InNamespace(i.namespace), client.MatchingLabels{corev1alpha1.ObjectDeploymentLabel: i.name}); err != nil {
			return err
		}
		if sets := list.GenericObjectSets(); len(sets) > 0 {
			return fmt.Errorf("%d are left", len(sets))
		}
		return nil
	})
}
