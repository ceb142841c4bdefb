package packages

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/mutationcache"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/internal/resolver"
	"lockstep.run/lockstep/test/require"
)

// deletions are Packages that depend on each other. Some have written objects, some were refused,
// and some were never deployed. Another controller tears down their deployments.
type deletions struct {
	*cluster
	t   *rapid.T
	log []string
}

var deletedNames = []string{"a", "b", "c", "d"}

// Packages that depend on each other, also in cycles, are deleted in any order and in any state of
// their deployments, and the manager restarts at any moment. A Package with objects is torn down
// after its dependents, a Package without objects does not wait, and in the end all are removed.
func TestDeletionsEnd(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		if os.Getenv("LOCKSTEP_DEEP") == "" && rapid.IntRange(0, 9).Draw(rt, "sampled") > 0 {
			return
		}
		d := &deletions{t: rt, cluster: newClusterWith(t, func(b *fake.ClientBuilder) {
			b.WithStatusSubresource(&corev1alpha1.Package{}, &corev1alpha1.ObjectDeployment{}, &corev1alpha1.ObjectSet{})
		})}
		d.restart()
		for _, name := range deletedNames {
			d.create(name)
		}
		actions := map[string]func(string){"delete": d.delete, "reconcile": d.reconcile, "tear down": d.tearDown, "claim": d.claim, "restart": func(string) { d.restart() }}
		for range rapid.IntRange(0, 20).Draw(rt, "actions") {
			do := rapid.SampledFrom([]string{"reconcile", "delete", "tear down", "claim", "restart"}).Draw(rt, "action")
			actions[do](rapid.SampledFrom(deletedNames).Draw(rt, "name"))
		}
		d.rest()
		for _, name := range deletedNames {
			if pkg := d.get(name); pkg != nil && pkg.DeletionTimestamp != nil && !d.wrote(name) {
				d.failf("%s is held, although it has not written any object", name)
			}
		}
		for _, name := range rapid.Permutation(deletedNames).Draw(rt, "order") {
			d.delete(name)
		}
		d.rest()
		if left := d.packages(); len(left) > 0 {
			d.failf("%v are left", left)
		}
	})
}

func (d *deletions) failf(format string, args ...any) {
	d.t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), strings.Join(d.log, "\n"))
}

// restart loses all that the manager remembers.
func (d *deletions) restart() {
	d.Reconciler, _ = newReconciler(d.cluster.t)
	d.Client, d.Reader, d.Events = d.server, d.server, &events.FakeRecorder{}
	d.log = append(d.log, "restart")
}

func (d *deletions) packages() (names []string) {
	list := &corev1alpha1.PackageList{}
	d.must(d.server.List(d.cluster.t.Context(), list))
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

// create creates a Package that depends on some others, with a deployment or without.
func (d *deletions) create(name string) {
	ctx := d.cluster.t.Context()
	pkg := newPackage()
	pkg.Name, pkg.UID, pkg.ResourceVersion = name, types.UID(name), ""
	needs := rapid.SliceOfDistinct(rapid.SampledFrom(deletedNames), rapid.ID[string]).Draw(d.t, "needs")
	for _, other := range needs {
		entry := corev1alpha1.DependencyStatus{PackageRef: resolver.Instance{Namespace: "team", Name: other}.Reference()}
		entry.Name, entry.Package = other, &corev1alpha1.DependencyPackage{Name: other}
		pkg.Status.Dependencies = append(pkg.Status.Dependencies, entry)
	}
	if rapid.Bool().Draw(d.t, "resolved") {
		pkg.Status.Resolved = &corev1alpha1.ResolvedPackage{PackageName: name}
	}
	d.must(d.server.Create(ctx, pkg.DeepCopy()))
	live := d.get(name)
	live.Status = pkg.Status
	d.must(d.server.Status().Update(ctx, live))
	state := rapid.SampledFrom([]string{"not deployed", "refused", "claimed", "foreign"}).Draw(d.t, "state")
	d.log = append(d.log, fmt.Sprintf("%s needs %v, %s", name, needs, state))
	if state == "not deployed" {
		return
	}
	dep, set := newOwned(), &corev1alpha1.ObjectSet{}
	dep.Name, dep.UID, dep.ResourceVersion, dep.Finalizers = name, types.UID("dep-"+name), "", []string{corev1alpha1.CachedFinalizer}
	dep.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(pkg, corev1alpha1.GroupVersion.WithKind("Package"))}
	if state == "foreign" {
		controlledBy("Package", "another", "")(dep)
	}
	set.Namespace, set.Name, set.OwnerReferences = "team", name+"-1", []metav1.OwnerReference{*metav1.NewControllerRef(dep, corev1alpha1.GroupVersion.WithKind("ObjectDeployment"))}
	d.must(d.server.Create(ctx, dep))
	d.must(d.server.Create(ctx, set.DeepCopy()))
	d.setClaim(name, state != "refused")
}

func (d *deletions) setClaim(name string, claimed bool) {
	set := &corev1alpha1.ObjectSet{}
	if err := d.server.Get(d.cluster.t.Context(), client.ObjectKey{Namespace: "team", Name: name + "-1"}, set); err != nil {
		return
	}
	status := "False"
	if claimed {
		status = "True"
	}
	set.Status.Conditions = []metav1.Condition{conditionOf(corev1alpha1.ConditionClaimed, status, "Test")}
	d.must(d.server.Status().Update(d.cluster.t.Context(), set))
}

// claim has a Package roll out that was refused.
func (d *deletions) claim(name string) {
	if dep := d.deploymentOf(name); dep != nil && dep.DeletionTimestamp == nil {
		d.log = append(d.log, name+" claims its objects")
		d.setClaim(name, true)
	}
}

func (d *deletions) deploymentOf(name string) *corev1alpha1.ObjectDeployment {
	dep := &corev1alpha1.ObjectDeployment{}
	if err := d.server.Get(d.cluster.t.Context(), client.ObjectKey{Namespace: "team", Name: name}, dep); err != nil {
		return nil
	}
	return dep
}

// wrote reports whether a Package has objects.
func (d *deletions) wrote(name string) bool {
	set := &corev1alpha1.ObjectSet{}
	dep := d.deploymentOf(name)
	err := d.server.Get(d.cluster.t.Context(), client.ObjectKey{Namespace: "team", Name: name + "-1"}, set)
	return dep != nil && dep.OwnerReferences[0].UID == types.UID(name) && err == nil && objectsets.Written(set)
}

func (d *deletions) delete(name string) {
	if pkg := d.get(name); pkg != nil && pkg.DeletionTimestamp == nil {
		d.log = append(d.log, "delete "+name)
		d.must(d.server.Delete(d.cluster.t.Context(), pkg))
	}
}

// reconcile takes a step of a Package that is being deleted.
func (d *deletions) reconcile(name string) {
	pkg := d.get(name)
	if pkg == nil || pkg.DeletionTimestamp == nil {
		return
	}
	ctx := d.cluster.t.Context()
	before := d.deploymentOf(name)
	s := d.of(pkg)
	var err error
	s.dep, err = d.deployment(ctx, keyOf(pkg), pkg.UID)
	d.must(err)
	wrote := d.wrote(name)
	d.must(s.tearDown(ctx))
	after := d.deploymentOf(name)
	if before == nil || before.DeletionTimestamp != nil || after != nil && after.DeletionTimestamp == nil {
		return
	}
	d.log = append(d.log, "the deployment of "+name+" is deleted")
	for _, other := range d.packages() {
		if wrote && other != name && d.needs(other, name) && !d.reaches(name, other) {
			d.failf("%s is torn down before %s, which needs it", name, other)
		}
	}
}

func (d *deletions) needs(name, other string) bool {
	pkg := d.get(name)
	return pkg != nil && slices.ContainsFunc(pkg.Status.Dependencies, func(e corev1alpha1.DependencyStatus) bool { return e.Name == other })
}

// reaches reports whether a Package needs another one, directly or by way of others.
func (d *deletions) reaches(from, to string) bool {
	seen, todo := map[string]bool{}, []string{from}
	for len(todo) > 0 {
		next := todo[0]
		todo = todo[1:]
		for _, other := range deletedNames {
			if d.needs(next, other) && !seen[other] {
				seen[other] = true
				todo = append(todo, other)
			}
		}
	}
	return seen[to]
}

// tearDown plays the controller of deployments: it completes the deletion of one.
func (d *deletions) tearDown(name string) {
	ctx := d.cluster.t.Context()
	dep := d.deploymentOf(name)
	if dep == nil || dep.DeletionTimestamp == nil {
		return
	}
	d.log = append(d.log, name+" is torn down")
	d.must(client.IgnoreNotFound(d.server.Delete(ctx, &corev1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name + "-1"}})))
	dep.Finalizers = nil
	d.must(d.server.Update(ctx, dep))
}

// rest reconciles all Packages until they stop changing.
func (d *deletions) rest() {
	for before := ""; before != d.state(); {
		before = d.state()
		for _, name := range deletedNames {
			d.reconcile(name)
			d.tearDown(name)
		}
	}
}

// state identifies the state of all Packages and deployments.
func (d *deletions) state() (text string) {
	packages, deployments := &corev1alpha1.PackageList{}, &corev1alpha1.ObjectDeploymentList{}
	d.must(d.server.List(d.cluster.t.Context(), packages))
	d.must(d.server.List(d.cluster.t.Context(), deployments))
	for _, pkg := range packages.Items {
		text += pkg.Name + pkg.ResourceVersion + " "
	}
	for _, dep := range deployments.Items {
		text += dep.Name + dep.ResourceVersion + " "
	}
	return text
}

// reading returns a client of these objects, and calls read after each GET.
func reading(t *testing.T, read func(), objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, corev1alpha1.AddToScheme(scheme))
	return interceptor.NewClient(
		fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(objects...).Build(),
		interceptor.Funcs{Get: func(
			ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
		) error {
			defer read()
			return c.Get(ctx, key, obj, opts...)
		}})
}

// The event of a deployment can arrive between the read of the cache and the read of the store of
// own writes. One of the two has it.
func TestDeploymentIsKnownThroughout(t *testing.T) {
	t.Parallel()
	pkg, dep, store := newPackage(), newOwned(), mutationcache.NewStore()
	store.PutCreated(string(pkg.UID), dep)
	r := &Reconciler{Options: Options{Fresh: store}, Client: reading(t, func() { store.Handler().OnAdd(dep, false) })}
	got, err := r.deployment(t.Context(), types.NamespacedName{Namespace: dep.Namespace, Name: dep.Name}, pkg.UID)
	if err != nil || got == nil {
		t.Errorf("the deployment exists: %v, %v", got, err)
	}
}

// A Package is removed once its deployment no longer exists. If the manager did not observe the
// deletion, a cache without the deployment might be behind.
func TestDeploymentThatTheCacheLacks(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		exists, seen bool
		// noAnswer means that the API server does not answer for deployments, and unserved that it
		// certainly does not serve them.
		noAnswer, unserved bool
		reads              int
		removed            bool
	}{
		"the cache is behind": {exists: true, reads: 1},
		"it is not there":     {reads: 1, removed: true},
		"it was seen leaving": {seen: true, removed: true},
		"there is no answer":  {noAnswer: true, reads: 1},
		"its CRD was deleted": {noAnswer: true, unserved: true, reads: 1, removed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reads := 0
			pkg, dep := newPackage(), newOwned()
			pkg.Finalizers = append(pkg.Finalizers, "example.com/other")
			dep.Finalizers = []string{corev1alpha1.CachedFinalizer}
			all := []client.Object{pkg}
			if tc.exists {
				all = append(all, dep)
			}
			c := reading(t, func() { reads++ }, all...)
			require.NoError(t, c.Delete(t.Context(), pkg))
			r, _ := newReconciler(t)
			r.Client, r.Reader, r.Now = c, c, time.Now
			r.Unserved = func(schema.GroupKind) bool { return tc.unserved }
			if tc.noAnswer {
				r.Reader = interceptor.NewClient(c, interceptor.Funcs{
					Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
						reads++
						return apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{}, "shop", "404 page not found", 0, true)
					},
				})
			}
			found := &corev1alpha1.Package{}
			require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(pkg), found))
			s := r.of(found)
			if tc.seen {
				s.state.terminating = s.now
			}
			reads = 0
			if err := s.tearDown(t.Context()); (err != nil) != (tc.noAnswer && !tc.unserved) {
				t.Fatal(err)
			}
			if removed := len(s.pkg.GetFinalizers()) == 1; removed != tc.removed || reads != tc.reads {
				t.Errorf("the Package is removed: %t, after %d reads; want %t, %d", removed, reads, tc.removed, tc.reads)
			}
			require.Equal(t, (tc.exists || tc.seen), !s.state.terminating.IsZero(), "the deployment is known to be terminating")
		})
	}
}
