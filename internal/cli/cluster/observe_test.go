package cluster_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/test/require"
)

// until checks after every change until the snapshot is as wanted.
func until(t *testing.T, o *cluster.Observer, wanted func(progress.Snapshot) bool) progress.Snapshot {
	t.Helper()
	ctx := testContext(t)
	for {
		snap, ok, err := o.Snapshot(ctx)
		require.NoError(t, err)
		if ok && wanted(snap) {
			return snap
		}
		select {
		case <-o.Changed():
		case <-ctx.Done():
			t.Fatalf("not seen; last: %+v", snap)
		}
	}
}

func otherPkg(name string) *corev1alpha1.Package {
	p := pkg(name)
	p.UID = "p-2"
	return p
}

func objectSet(name string, revision int64, state corev1alpha1.ObjectSetLifecycleState) *corev1alpha1.ObjectSet {
	set := &corev1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "shop", UID: types.UID(name), Labels: map[string]string{corev1alpha1.PackageLabel: "a"},
	}}
	set.Spec.Revision, set.Spec.LifecycleState = revision, state
	set.Spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{{Name: "all", Slices: []string{"slice", "missing"}}}
	return set
}

func TestObserve(t *testing.T) {
	t.Parallel()
	slice := &corev1alpha1.ObjectSlice{ObjectMeta: metav1.ObjectMeta{Name: "slice", Namespace: "shop"}}
	slice.Objects = []corev1alpha1.ObjectSetObject{{Object: runtime.RawExtension{Raw: []byte(`{"kind":"ConfigMap"}`)}}}
	c := fakeCluster(t, nil, pkg("a"), otherPkg("b"), slice,
		objectSet("a-1", 1, corev1alpha1.ObjectSetLifecycleStateActive), objectSet("a-2", 2, ""),
		objectSet("a-3", 3, corev1alpha1.ObjectSetLifecycleStateArchived))
	o := c.Observe(testContext(t), c.Target(corev1alpha1.ScopeNamespaced, "a"), "p-1")

	until(t, o, func(s progress.Snapshot) bool {
		return s.Package != nil && s.Package.GetName() == "a" && s.Set != nil && s.Set.GetName() == "a-2" && len(s.Slices["slice"]) == 1
	})
	watched(t, c)
	changed := pkg("a")
	require.NoError(t, c.Get(testContext(t), client.ObjectKeyFromObject(changed), changed))
	changed.Spec.Image = "new"
	require.NoError(t, c.Update(testContext(t), changed))
	until(t, o, func(s progress.Snapshot) bool { return s.Package != nil && s.Package.PackageSpec().Image == "new" })
	require.NoError(t, c.Delete(testContext(t), changed))
	until(t, o, func(s progress.Snapshot) bool { return s.Package == nil })
}

// A package that was deleted and created again is not followed.
func TestObserveOtherUID(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, nil, pkg("a"))
	o := c.Observe(testContext(t), c.Target(corev1alpha1.ScopeNamespaced, "a"), "before")
	until(t, o, func(s progress.Snapshot) bool { return s.Package == nil })
}

// A user who may not read revisions still sees the package.
func TestObserveWithoutSets(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, &interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if _, ok := list.(*corev1alpha1.ObjectSetList); ok {
			return apierrors.NewForbidden(corev1alpha1.Resource("objectsets"), "", nil)
		}
		return c.List(ctx, list, opts...)
	}}, pkg("a"))
	o := c.Observe(testContext(t), c.Target(corev1alpha1.ScopeNamespaced, "a"), "p-1")
	if snap := until(t, o, func(s progress.Snapshot) bool { return s.Package != nil }); snap.Set != nil || snap.Lost != "" {
		t.Errorf("set %v, lost %q", snap.Set, snap.Lost)
	}
}

func TestObserveForbidden(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, &interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return apierrors.NewForbidden(corev1alpha1.Resource("packages"), "", nil)
	}}, pkg("a"))
	ctx := testContext(t)
	o := c.Observe(ctx, c.Target(corev1alpha1.ScopeNamespaced, "a"), "p-1")
	for { // refusals of revisions might come before refusals of packages, and hide only the revisions
		select {
		case <-o.Changed():
		case <-ctx.Done():
			t.Fatal("no error")
		}
		if _, _, err := o.Snapshot(ctx); err != nil {
			return
		}
	}
}

// The sets show the revision in charge. Right after a change, the status of the deployment still
// names the previous one.
func TestCurrentRevision(t *testing.T) {
	t.Parallel()
	set := func(name string, revision int64, state corev1alpha1.ObjectSetLifecycleState, waits bool) corev1alpha1.GenericObjectSet {
		s := &corev1alpha1.ObjectSet{}
		s.Name, s.Spec.Revision, s.Spec.LifecycleState = name, revision, state
		if waits {
			s.Annotations = map[string]string{corev1alpha1.AwaitingActivationAnnotation: "true"}
		}
		return s
	}
	deployment := &corev1alpha1.ObjectDeployment{}
	deployment.Status.CurrentRevision = "two"
	one := set("one", 1, corev1alpha1.ObjectSetLifecycleStateArchived, false)
	two := set("two", 2, corev1alpha1.ObjectSetLifecycleStateActive, false)
	for want, sets := range map[string][]corev1alpha1.GenericObjectSet{
		"two":   {one, two, set("waits", 3, corev1alpha1.ObjectSetLifecycleStatePaused, true)},
		"three": {one, two, set("three", 3, corev1alpha1.ObjectSetLifecycleStateActive, false)},
		"four":  {one, two, set("four", 4, corev1alpha1.ObjectSetLifecycleStatePaused, false)},
		"one":   {one},
	} {
		if got := (&cluster.Rollout{Deployment: deployment, Sets: sets}).Current(); got.GetName() != want {
			t.Errorf("%s is in charge, want %s", got.GetName(), want)
		}
	}
}

// An informer has synced once the handler has all objects of the first list.
func TestInformerSyncsWithHandler(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, nil, pkg("a"), pkg("b"))
	handle := make(chan struct{})
	informer := c.Inform(testContext(t), cluster.Watched{
		Example: &corev1alpha1.Package{}, List: &corev1alpha1.PackageList{},
		Options: func() client.ListOptions { return client.ListOptions{} }, Report: func(error) {},
		Handler: cache.ResourceEventHandlerFuncs{AddFunc: func(any) { <-handle }},
	})
	wait := func(synced cache.InformerSynced) {
		t.Helper()
		if !cache.WaitForCacheSync(t.Context().Done(), synced) {
			t.Fatal("it has not synced")
		}
	}
	wait(informer.SharedIndexInformer.HasSynced)
	handle <- struct{}{}
	if informer.HasSynced() {
		t.Error("it has synced before the handler has all objects")
	}
	close(handle)
	wait(informer.HasSynced)
}

// unanswered is a cluster whose watch connections end without an answer.
type unanswered struct{ client.WithWatch }

// Watch implements client.WithWatch.
func (unanswered) Watch(context.Context, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
	return watch.NewEmptyWatch(), nil
}

// Connections that end without an answer are reported, although client-go returns no error for
// them.
func TestInformerReportsUnansweredWatches(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, nil, pkg("a"))
	c.WithWatch = unanswered{c.WithWatch}
	ctx, reports := testContext(t), make(chan error)
	c.Inform(ctx, cluster.Watched{
		Example: &corev1alpha1.Package{}, List: &corev1alpha1.PackageList{},
		Options: func() client.ListOptions { return client.ListOptions{} }, Handler: cache.ResourceEventHandlerFuncs{},
		Report: func(err error) {
			select {
			case reports <- err:
			case <-ctx.Done():
			}
		},
	})
	for {
		select {
		case err := <-reports:
			if err != nil && strings.Contains(c.Explain("it cannot be watched", err).Error(), "cannot be reached: the API server does not answer") {
				return
			}
		case <-ctx.Done():
			t.Fatal("no event is reported")
		}
	}
}

// listing is a fake client that cannot stream lists. Unlike an API server, it misses changes
// between a list and its watch. A test that changes an object only once waits until a package is
// watched.
type listing struct {
	client.WithWatch
	watched chan struct{}
	once    *sync.Once
}

func (listing) IsWatchListSemanticsUnSupported() bool { return true }

func (l listing) Watch(ctx context.Context, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
	w, err := l.WithWatch.Watch(ctx, list, opts...)
	if _, ok := list.(*corev1alpha1.PackageList); ok && err == nil {
		l.once.Do(func() { close(l.watched) })
	}
	return w, err
}

// watched returns once a package is watched.
func watched(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	select {
	case <-c.WithWatch.(listing).watched:
	case <-testContext(t).Done():
		t.Fatal("no kind is watched")
	}
}

// fakeCluster holds objects in memory; intercept, which may be nil, fails
// requests.
func fakeCluster(t *testing.T, intercept *interceptor.Funcs, objects ...client.Object) *cluster.Cluster {
	t.Helper()
	c, err := cluster.New("https://fake", "shop", func(o client.Options) (client.WithWatch, error) {
		byName := func(obj client.Object) []string { return []string{obj.GetName()} }
		b := fake.NewClientBuilder().WithScheme(o.Scheme).WithRESTMapper(o.Mapper).WithObjects(objects...).
			WithIndex(&corev1alpha1.Package{}, "metadata.name", byName).
			WithIndex(&corev1alpha1.ClusterPackage{}, "metadata.name", byName)
		if intercept != nil {
			b = b.WithInterceptorFuncs(*intercept)
		}
		return listing{b.Build(), make(chan struct{}), &sync.Once{}}, nil
	})
	require.NoError(t, err)
	return c
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}
