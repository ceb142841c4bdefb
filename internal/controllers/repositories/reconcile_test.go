package repositories

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/repository"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/kube/mutationcache"
	"lockstep.run/lockstep/test/require"
)

// world is an API server, sources with contents, and a manager that can be started again.
type world struct {
	*Reconciler
	server client.WithWatch
	// contents are the present contents of the repositories, and before their former ones.
	contents, before map[string]*repository.Content
	// broken sources fail; writes fail while refused is set, and are counted.
	broken  map[string]bool
	refused bool
	writes  int
	// left is the number of writes that still succeed if dies is set.
	dies  bool
	left  int
	now   time.Time
	woken chan string
	// A fetch sends to fetches before it starts, so that none ends before the reconcile that starts
	// it.
	fetches chan struct{}
}

func newWorld() *world {
	scheme := runtime.NewScheme()
	if err := corev1alpha1.AddToScheme(scheme); err != nil {
		panic(err)
	}
	w := &world{contents: map[string]*repository.Content{}, before: map[string]*repository.Content{}, broken: map[string]bool{}, now: start}
	refuse := func() error {
		w.writes++
		if w.dies && w.left == 0 {
			return errors.New("the manager is being killed")
		}
		w.left--
		if w.refused && rand.IntN(2) == 0 {
			return errors.New("the API server is away")
		}
		return nil
	}
	w.server = interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&corev1alpha1.PackageRepository{}).Build(), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if a, ok := obj.(*corev1alpha1.AvailablePackage); ok {
				a.UID = types.UID(fmt.Sprintf("%s-%d", a.Name, rand.Int64()))
				if err := refuse(); err != nil {
					return err
				}
			}
			return c.Create(ctx, obj, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			if err := refuse(); err != nil {
				return err
			}
			return c.Update(ctx, obj, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			if _, ok := obj.(*corev1alpha1.AvailablePackage); ok {
				if err := refuse(); err != nil {
					return err
				}
			}
			return c.Delete(ctx, obj, opts...)
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			if err := refuse(); err != nil {
				return err
			}
			return c.SubResource(sub).Update(ctx, obj, opts...)
		},
	})
	return w
}

// restart forgets everything except the state of the API server.
func (w *world) restart(ctx context.Context) {
	w.woken, w.fetches = make(chan string, 1000), make(chan struct{})
	begin := w.fetches
	w.Reconciler = &Reconciler{
		Options: Options{Sources: sources.NewWatches(nil, nil), Fresh: mutationcache.NewStore(), Namespace: "system"},
		Client:  caching{w.server}, Reader: w.server, Events: events.NewFakeRecorder(10_000), Now: func() time.Time { return w.now },
		life: ctx, jitter: func() float64 { return 0 },
		fetch: func(ctx context.Context, j job) (*result, error) {
			select {
			case begin <- struct{}{}:
				return w.fetchOne(j)
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
	}
	w.enqueue = func(namespace string) { w.woken <- namespace }
}

// caching reads as from the caches of the manager.
type caching struct{ client.WithWatch }

func (c caching) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	opts = slices.DeleteFunc(opts, func(o client.ListOption) bool { return o == client.UnsafeDisableDeepCopy })
	err := c.WithWatch.List(ctx, list, opts...)
	if found, ok := list.(corev1alpha1.GenericAvailablePackageList); ok {
		for _, object := range found.GenericAvailablePackages() {
			Compact(object)
		}
	}
	return err
}

func (w *world) fetchOne(j job) (*result, error) {
	name := j.repository.GetName()
	if w.broken[name] {
		return nil, errors.New("the source is away")
	}
	content, err := pack(w.contents[name])
	if err != nil {
		return nil, err
	}
	digest := fmt.Sprintf("%x", digestOfContent(content))
	if j.known == digest {
		return &result{notModified: true}, nil
	}
	return &result{digest: digest, revision: digest[:8], validator: digest, content: content}, nil
}

func digestOfContent(p *packed) (sum [32]byte) {
	for _, pkg := range p.packages {
		for i, b := range pkg.digest {
			sum[i] ^= b
		}
	}
	return sum
}

// addHTTP adds a repository with a content.
func (w *world) addHTTP(t *testing.T, name string, content *repository.Content, change ...func(*corev1alpha1.PackageRepository)) *corev1alpha1.PackageRepository {
	t.Helper()
	w.contents[name] = content
	r := &corev1alpha1.PackageRepository{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, Generation: 1, UID: types.UID(name)}}
	r.Spec.Source.HTTP = &corev1alpha1.RepositoryHTTPSource{URL: "https://registry.test/" + name}
	for _, c := range change {
		c(r)
	}
	require.NoError(t, w.server.Create(t.Context(), r))
	return r
}

// converge reconciles until no step is due before the next interval.
func (w *world) converge(t failer) {
	for range 200 {
		result, err := w.reconcile()
		switch {
		case err != nil:
			w.now = w.now.Add(time.Second)
		case result.RequeueAfter == 0 || result.RequeueAfter > 20*time.Second:
			return
		default:
			w.now = w.now.Add(result.RequeueAfter)
		}
	}
	t.Fatalf("it does not come to rest")
}

// reconcile reconciles once, and waits until the fetches that were started have ended, which is due
// at once.
func (w *world) reconcile() (reconcile.Result, error) {
	result, err := w.Reconcile(context.Background(), requestFor("team"))
	for w.fetching() {
		select {
		case <-w.fetches:
		case <-w.woken:
		}
		result.RequeueAfter = time.Nanosecond
	}
	return result, err
}

type failer interface {
	Fatalf(format string, args ...any)
}

func (w *world) fetching() bool {
	c, _ := w.catalogueOf("team")
	for _, st := range c.states {
		if a := w.memory.Of(&st.attempt); a != nil && !a.Done {
			return true
		}
	}
	return false
}

// offered returns the published offers, by package and version: the repository and the
// identity of the content.
func (w *world) offered() map[string]string {
	list := &corev1alpha1.AvailablePackageList{}
	if err := w.server.List(context.Background(), list); err != nil {
		panic(err)
	}
	all := map[string]string{}
	for _, a := range list.Items {
		for _, v := range a.Spec.Versions {
			all[a.Spec.PackageName+" "+v.Version] = v.Repository + " " + v.Image
		}
	}
	return all
}

// drawn returns a content with a few packages; repositories have equal and different ones.
func drawn(t *rapid.T) *repository.Content {
	c := &repository.Content{}
	for _, name := range []string{"cart", "shop", "till"} {
		pkg := repository.Package{Name: name}
		for _, version := range []string{"1.0.0", "1.1.0", "2.0.0"} {
			if n := rapid.IntRange(0, 3).Draw(t, name+" "+version); n > 0 {
				pkg.Versions = append(pkg.Versions, corev1alpha1.AvailableVersion{Version: version, Image: fmt.Sprintf("registry.test/%s:%d", name, n)})
			}
		}
		if len(pkg.Versions) > 0 {
			c.Packages = append(c.Packages, pkg)
		}
	}
	return c
}

// After any offers, changes, failures and restarts, exactly the versions that a repository offers
// are published, each as one of the repositories with the highest priority has it. One more
// reconcile and one more restart do not write.
func TestCatalogueConverges(t *testing.T) {
	t.Parallel()
	names := []string{"first", "second", "third"}
	rapid.Check(t, func(t *rapid.T) {
		ctx, end := context.WithCancel(context.Background())
		defer end()
		w := newWorld()
		w.restart(ctx)
		present := map[string]*corev1alpha1.PackageRepository{}
		for range rapid.IntRange(1, 12).Draw(t, "changes") {
			name := rapid.SampledFrom(names).Draw(t, "repository")
			change := rapid.SampledFrom([]string{"content", "content", "back", "priority", "delete", "break", "refuse", "restart", "tamper", "converge"}).Draw(t, "change")
			w.change(ctx, t, change, name, present)
			if rapid.Bool().Draw(t, "converge") {
				w.converge(t)
			}
		}
		w.refused = false
		clear(w.broken)
		w.now = w.now.Add(time.Hour)
		w.converge(t)
		w.now = w.now.Add(time.Hour)
		w.converge(t)
		w.judge(t, present)

		w.writes = 0
		w.converge(t)
		w.restart(ctx)
		w.converge(t)
		if w.writes > 0 {
			t.Errorf("at rest, %d writes", w.writes)
		}
		w.judge(t, present)
	})
}

func (w *world) change(ctx context.Context, t *rapid.T, change, name string, present map[string]*corev1alpha1.PackageRepository) {
	r := present[name]
	switch change {
	case "back":
		if r != nil {
			w.contents[name], w.before[name] = w.before[name], w.contents[name]
		}
	case "content":
		w.before[name], w.contents[name] = w.contents[name], drawn(t)
		if w.before[name] == nil {
			w.before[name] = w.contents[name]
		}
		if r == nil {
			r = &corev1alpha1.PackageRepository{ObjectMeta: metav1.ObjectMeta{
				Namespace: "team", Name: name, Generation: 1, CreationTimestamp: metav1.Time{Time: start}, UID: types.UID(fmt.Sprint(name, rand.Int64())),
			}}
			r.Spec.Source.HTTP = &corev1alpha1.RepositoryHTTPSource{URL: "https://registry.test/" + name}
			require.NoError(t, w.server.Create(ctx, r))
			present[name] = r
		}
	case "priority":
		if r != nil {
			w.retry(ctx, t, r, func(r *corev1alpha1.PackageRepository) {
				r.Spec.Priority, r.Generation = int32(rapid.IntRange(-1, 1).Draw(t, "priority")), r.Generation+1
			})
		}
	case "delete":
		if r != nil {
			delete(present, name)
			require.NoError(t, w.server.Delete(ctx, r))
		}
	case "break":
		w.broken[name] = !w.broken[name]
	case "refuse":
		w.refused = !w.refused
	case "restart":
		w.restart(ctx)
	case "tamper":
		list := &corev1alpha1.AvailablePackageList{}
		require.NoError(t, w.server.List(ctx, list))
		if len(list.Items) > 0 {
			w.refused = false
			list.Items[0].Spec.Versions[0].Image = "registry.test/forged"
			require.NoError(t, w.server.Update(ctx, &list.Items[0]))
		}
	}
	w.now = w.now.Add(15 * time.Minute)
}

// retry changes a repository behind the back of the counter of writes.
func (w *world) retry(ctx context.Context, t *rapid.T, r *corev1alpha1.PackageRepository, change func(*corev1alpha1.PackageRepository)) {
	refused := w.refused
	w.refused = false
	defer func() { w.refused = refused }()
	require.NoError(t, w.server.Get(ctx, keyOf(r), r))
	change(r)
	require.NoError(t, w.server.Update(ctx, r))
}

// judge compares the published offers with the repositories' offers.
func (w *world) judge(t *rapid.T, present map[string]*corev1alpha1.PackageRepository) {
	published, versions := w.offered(), map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(present)) {
		for _, pkg := range w.contents[name].Packages {
			for _, v := range pkg.Versions {
				versions[pkg.Name+" "+v.Version] = true
			}
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(versions)), slices.Sorted(maps.Keys(published))); diff != "" {
		t.Fatalf("published: %s", diff)
	}
	for key, is := range published {
		best, allowed := int32(-2), []string{}
		for name, r := range present {
			for _, pkg := range w.contents[name].Packages {
				for _, v := range pkg.Versions {
					if pkg.Name+" "+v.Version != key {
						continue
					}
					if r.Spec.Priority > best {
						best, allowed = r.Spec.Priority, nil
					}
					if r.Spec.Priority == best {
						allowed = append(allowed, v.Image)
					}
				}
			}
		}
		if image := is[len(is)-len(allowed[0]):]; !slices.Contains(allowed, image) {
			t.Errorf("%s is published as %s, want one of %v", key, is, allowed)
		}
	}
}

// The published offers are all that a restarted manager has. It fetches a repository in whole
// before its versions get lost in favour of others, and if other clients have changed the published
// offers.
func TestContentIsFetchedInWhole(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	one := func(image string) *repository.Content {
		return &repository.Content{Packages: []repository.Package{{
			Name: "cart", Versions: []corev1alpha1.AvailableVersion{{Version: "1.0.0", Image: image}},
		}}}
	}
	begin := func(t *testing.T) (w *world, add func(name, image string, priority int32) *corev1alpha1.PackageRepository) {
		w = newWorld()
		w.restart(ctx)
		add = func(name, image string, priority int32) *corev1alpha1.PackageRepository {
			return w.addHTTP(t, name, one(image), func(r *corev1alpha1.PackageRepository) { r.Spec.Priority = priority })
		}
		add("first", "a", 0)
		w.converge(t)
		w.restart(ctx)
		w.converge(t)
		if c, _ := w.catalogueOf("team"); c.states["first"].content != nil {
			t.Fatal("the restarted manager has the content")
		}
		return w, add
	}
	check := func(t *testing.T, w *world, want string) {
		t.Helper()
		w.converge(t)
		require.Equal(t, want, w.offered()["cart 1.0.0"], "published")
	}
	t.Run("shadowed", func(t *testing.T) {
		t.Parallel()
		w, add := begin(t)
		second := add("second", "b", 1)
		check(t, w, "second b")
		require.NoError(t, w.server.Delete(ctx, second))
		w.broken["first"] = true // it is not needed any more
		check(t, w, "first a")
	})
	t.Run("shadowed while its changes are requested", func(t *testing.T) {
		t.Parallel()
		w := newWorld()
		w.restart(ctx)
		w.addHTTP(t, "first", one("a"))
		second := w.addHTTP(t, "second", one("b"))
		check(t, w, "first a")
		w.restart(ctx) // both are fetched again, the second one in whole since its spec changes
		require.NoError(t, w.server.Get(ctx, keyOf(second), second))
		second.Spec.Priority, second.Generation = 1, second.Generation+1
		require.NoError(t, w.server.Update(ctx, second))
		check(t, w, "second b")
		require.NoError(t, w.server.Delete(ctx, second))
		check(t, w, "first a")
	})
	t.Run("changed by others", func(t *testing.T) {
		t.Parallel()
		w, _ := begin(t)
		a := &corev1alpha1.AvailablePackage{}
		require.NoError(t, w.server.Get(ctx, types.NamespacedName{Namespace: "team", Name: "cart"}, a))
		a.Spec.Versions[0].Image = "forged"
		require.NoError(t, w.server.Update(ctx, a))
		check(t, w, "first a")
	})
}

// behind is a cache that has no repositories yet.
type behind struct{ caching }

func (c behind) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if _, repositories := list.(*corev1alpha1.PackageRepositoryList); repositories {
		return nil
	}
	return c.caching.List(ctx, list, opts...)
}

// Published offers stay while the cache does not have their repository yet, and are
// deleted with the repository.
func TestRepositoriesOfALateCache(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.restart(t.Context())
	stable := w.addHTTP(t, "stable", contentOf("a", "1.0.0"))
	w.converge(t)
	before := w.offered()
	// Another client wrote one of the parts, so it is compared with the repositories' offers.
	part := &corev1alpha1.AvailablePackage{}
	require.NoError(t, w.server.Get(t.Context(), types.NamespacedName{Namespace: "team", Name: "shop"}, part))
	delete(part.Annotations, writtenAnnotation)
	require.NoError(t, w.server.Update(t.Context(), part))
	w.restart(t.Context())
	w.Client = behind{caching{w.server}}
	w.converge(t)
	if diff := cmp.Diff(before, w.offered()); diff != "" || len(before) == 0 {
		t.Errorf("the cache has no repository: %s", diff)
	}
	require.NoError(t, w.server.Delete(t.Context(), stable))
	w.converge(t)
	if offered := w.offered(); len(offered) > 0 {
		t.Errorf("the repository was deleted: %v", offered)
	}
}

// A manager that is killed between the writes of a publication leaves a part of it. The next
// manager publishes the source's present content completely in the end, even if it has the digest
// that the status still names and as many versions as before. While the source is unavailable, the
// status reports that the offers might be from both revisions.
func TestHalfPublished(t *testing.T) {
	t.Parallel()
	first, second := contentOf("a", "1.0.0"), contentOf("b", "1.0.0")
	// One version less and one more: the status has the same number for both.
	moved := contentOf("a", "1.0.0")
	moved.Packages[0].Versions[0].Version = "1.1.0"
	for name, next := range map[string]*repository.Content{"changed": second, "moved": moved} {
		for written := range 4 {
			t.Run(fmt.Sprintf("%s/%d", name, written), func(t *testing.T) {
				t.Parallel()
				w := newWorld()
				w.restart(t.Context())
				r := w.addHTTP(t, "stable", first)
				w.converge(t)
				before := w.offered()

				w.contents["stable"], w.now = next, w.now.Add(time.Hour)
				w.dies, w.left = true, written
				for range 3 {
					_, _ = w.reconcile()
				}
				half := w.offered()
				w.restart(t.Context())
				w.dies, w.broken["stable"] = false, true
				w.now = w.now.Add(time.Hour)
				w.converge(t)
				ready := w.condition(t, r, corev1alpha1.ConditionReady)
				warns := strings.Contains(ready.Message, "some of it might be missing, or from another revision")
				if mixed := !cmp.Equal(half, before) && w.artifact(t, r) == digestNamed(t, first); ready.Status != metav1.ConditionFalse || mixed != warns {
					t.Errorf("half published: %t; the status has %s: %s", mixed, ready.Status, ready.Message)
				}
				w.broken["stable"], w.contents["stable"], w.now = false, first, w.now.Add(time.Hour)
				w.converge(t)
				require.Equal(t, before, w.offered(), "after the source went back")
				if c := w.condition(t, r, corev1alpha1.ConditionReady); c.Status != metav1.ConditionTrue || w.artifact(t, r) != digestNamed(t, first) {
					t.Errorf("the status has %s: %s", c.Status, c.Message)
				}
				w.writes = 0
				w.restart(t.Context())
				w.converge(t)
				if w.writes > 0 {
					t.Errorf("after one more restart, %d writes", w.writes)
				}
			})
		}
	}
}

// A changed Secret supersedes a content that could not be published as a whole, and the source
// returns to its former content: it is fetched in whole.
func TestHalfPublishedIsSuperseded(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.restart(t.Context())
	w.addHTTP(t, "stable", contentOf("a", "1.0.0"))
	w.converge(t)
	before := w.offered()
	w.contents["stable"], w.now = contentOf("b", "1.0.0"), w.now.Add(time.Hour)
	w.dies, w.left = true, 1
	for range 3 {
		_, _ = w.reconcile()
	}
	w.dies, w.contents["stable"] = false, contentOf("a", "1.0.0")
	c, _ := w.catalogueOf("team")
	c.states["stable"].attempt.In.versions = "of an earlier Secret"
	w.converge(t)
	require.Equal(t, before, w.offered())
}

// contentOf is a content of two packages, each with a version of an image.
func contentOf(image, version string) *repository.Content {
	c := &repository.Content{}
	for _, name := range []string{"cart", "shop"} {
		c.Packages = append(c.Packages, repository.Package{
			Name: name, Versions: []corev1alpha1.AvailableVersion{{Version: version, Image: "registry.test/" + name + ":" + image}},
		})
	}
	return c
}

func digestNamed(t *testing.T, content *repository.Content) string {
	t.Helper()
	p, err := pack(content)
	require.NoError(t, err)
	return fmt.Sprintf("%x", digestOfContent(p))
}

func (w *world) condition(t *testing.T, r *corev1alpha1.PackageRepository, typ string) metav1.Condition {
	t.Helper()
	require.NoError(t, w.server.Get(t.Context(), keyOf(r), r))
	if c := meta.FindStatusCondition(r.Status.Conditions, typ); c != nil {
		return *c
	}
	return metav1.Condition{}
}

func (w *world) artifact(t *testing.T, r *corev1alpha1.PackageRepository) string {
	t.Helper()
	if err := w.server.Get(t.Context(), keyOf(r), r); err != nil || r.Status.Artifact == nil {
		t.Fatalf("%v, artifact %v", err, r.Status.Artifact)
	}
	return r.Status.Artifact.Digest
}
