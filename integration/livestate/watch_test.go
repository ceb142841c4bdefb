package livestate_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/test/require"
)

const cacheLabel = "package-operator.run/cache"

var (
	configMapKind = schema.GroupKind{Kind: "ConfigMap"}
	secretKind    = schema.GroupKind{Kind: "Secret"}
	namespaceKind = schema.GroupKind{Kind: "Namespace"}
)

// follower is a Cache that records the calls of its callbacks.
type follower struct {
	*livestate.Cache

	mu sync.Mutex
	// changes are the resource versions in calls of Changed, "" for nil.
	changes map[objects.Key][]string
	// observed counts the calls of Observe.
	observed map[objects.Key]int
	observe  func(key objects.Key, live *unstructured.Unstructured) *objects.Observed
}

// follow starts a Cache that ends with the test, or earlier by stop.
func follow(t *testing.T, config *rest.Config, options ...func(*livestate.Options)) (f *follower, stop func()) {
	t.Helper()
	f = &follower{changes: map[objects.Key][]string{}, observed: map[objects.Key]int{}}
	o := livestate.Options{
		KindChanged: func(schema.GroupKind) {},
		Names:       apinames.Default,
		Config:      config,
		Observe: func(key objects.Key, live *unstructured.Unstructured) *objects.Observed {
			f.mu.Lock()
			f.observed[key]++
			observe := f.observe
			f.mu.Unlock()
			if observe != nil {
				return observe(key, live)
			}
			return nil
		},
		Changed: func(changes ...objects.Change) {
			f.mu.Lock()
			defer f.mu.Unlock()
			for _, c := range changes {
				version := ""
				if c.Observed != nil {
					version = c.Observed.ResourceVersion
				}
				f.changes[c.Key] = append(f.changes[c.Key], version)
			}
		},
	}
	for _, option := range options {
		option(&o)
	}
	var err error
	f.Cache, err = livestate.New(o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = f.Start(ctx) }()
	stop = sync.OnceFunc(func() { cancel(); <-ended })
	t.Cleanup(stop)
	return f, stop
}

func (f *follower) told(key objects.Key) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.changes[key]...)
}

func (f *follower) timesObserved(key objects.Key) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.observed[key]
}

func (f *follower) synced(t *testing.T, kinds ...schema.GroupKind) {
	t.Helper()
	for _, gk := range kinds {
		eventually(t, gk.String()+" is synced", func() bool { return f.State(gk).Synced })
	}
}

// watched waits until the record of the object comes from the watch and has the resource version.
func (f *follower) watched(t *testing.T, key objects.Key, resourceVersion string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s is watched at %s", key, resourceVersion), func() bool {
		obs, ok := f.Get(key)
		return ok && obs.Watched && obs.ResourceVersion == resourceVersion
	})
}

func (f *follower) unknown(t *testing.T, key objects.Key) {
	t.Helper()
	eventually(t, key.String()+" is not known any more", func() bool {
		_, ok := f.Get(key)
		return !ok
	})
}

// lastTold waits until Changed has reported that state, because Get is ahead of it.
func (f *follower) lastTold(t *testing.T, key objects.Key, want string) {
	t.Helper()
	eventually(t, fmt.Sprintf("Changed was called for %s with %q", key, want), func() bool {
		told := f.told(key)
		return len(told) > 0 && told[len(told)-1] == want
	})
}

func (e *env) key(name string) objects.Key {
	return objects.Key{Kind: "ConfigMap", Namespace: e.namespace, Name: name}
}

// configMap creates a ConfigMap with the label of the watch.
func (e *env) configMap(t *testing.T, name string) *corev1.ConfigMap {
	t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: e.namespace, Name: name, Labels: map[string]string{cacheLabel: "True", "test": e.namespace},
	}}
	require.NoError(t, e.admin.Create(t.Context(), cm))
	return cm
}

func (e *env) set(t *testing.T, cm *corev1.ConfigMap, value string) {
	t.Helper()
	cm.Data = map[string]string{"a": value}
	require.NoError(t, e.admin.Update(t.Context(), cm))
}

func TestWatchFollowsLabelledObjects(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	before := e.configMap(t, "before")
	require.NoError(t, e.admin.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "foreign"}}))
	f, _ := follow(t, e.config)
	f.Use("a", []schema.GroupKind{configMapKind, namespaceKind})
	f.synced(t, configMapKind, namespaceKind)

	if obs, ok := f.Get(e.key("before")); !ok || !obs.Watched || obs.UID != before.UID || obs.ResourceVersion != before.ResourceVersion {
		t.Errorf("the record of a listed object: %+v %v", obs, ok)
	}
	if n := f.timesObserved(e.key("before")); n != 1 {
		t.Errorf("a listed object was observed %d times", n)
	}
	if _, ok := f.Get(e.key("foreign")); ok {
		t.Error("an object without the label must not be watched")
	}
	if s := f.State(configMapKind); !s.Served || !s.Namespaced || s.Version != "v1" || s.Err != nil || s.Listing == 0 {
		t.Errorf("state of ConfigMaps: %+v", s)
	}
	if s := f.State(namespaceKind); !s.Served || s.Namespaced {
		t.Errorf("state of Namespaces: %+v", s)
	}

	cm := e.configMap(t, "a")
	f.watched(t, e.key("a"), cm.ResourceVersion)
	f.lastTold(t, e.key("a"), cm.ResourceVersion)
	e.set(t, cm, "1")
	f.watched(t, e.key("a"), cm.ResourceVersion)
	f.lastTold(t, e.key("a"), cm.ResourceVersion)

	delete(cm.Labels, cacheLabel)
	require.NoError(t, e.admin.Update(t.Context(), cm))
	f.unknown(t, e.key("a"))
	f.lastTold(t, e.key("a"), "")
	cm.Labels[cacheLabel] = "True"
	require.NoError(t, e.admin.Update(t.Context(), cm))
	f.watched(t, e.key("a"), cm.ResourceVersion)
	require.NoError(t, e.admin.Delete(t.Context(), cm))
	f.unknown(t, e.key("a"))

	live, err := f.Fetch(t.Context(), e.key("foreign"))
	require.NoError(t, err)
	if live.GetName() != "foreign" {
		t.Errorf("Fetch returned %v", live)
	}
	_, err = f.Fetch(t.Context(), e.key("a"))
	wantClass(t, err, apply.Absent, "Fetch of a deleted object")

	if obs, known := f.Get(e.key("before")); !known || obs.UID != before.UID {
		t.Errorf("the record of the other object: %v %v", obs, known)
	}
}

func TestKindsInUse(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	cm := e.configMap(t, "a")
	f, _ := follow(t, e.config, func(o *livestate.Options) { o.Grace = time.Millisecond })
	if f.State(configMapKind).Synced {
		t.Error("the kind has no users")
	}
	f.Use("a", []schema.GroupKind{configMapKind})
	f.Use("b", []schema.GroupKind{configMapKind, secretKind})
	f.synced(t, configMapKind, secretKind)
	f.lastTold(t, e.key("a"), cm.ResourceVersion)
	f.Use("a", nil)
	f.Use("b", []schema.GroupKind{secretKind})
	eventually(t, "the watch is stopped", func() bool { return !f.State(configMapKind).Synced })
	f.unknown(t, e.key("a"))
	if told := f.told(e.key("a")); told[len(told)-1] == "" {
		t.Error("stopping a watch must not change the records of the objects")
	}
	if !f.State(secretKind).Synced {
		t.Error("the watch of a kind in use must continue")
	}
	f.Use("c", []schema.GroupKind{configMapKind})
	f.synced(t, configMapKind)
	f.watched(t, e.key("a"), cm.ResourceVersion)
}

func TestCRDChangesVersions(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	w := newWriter(t, e.config)
	thing := crd(unique("versions")+".example.com", "Thing", apiextensionsv1.ClusterScoped, "v1beta1", "v1")
	thing.Spec.Versions[1].Served = false
	gk := schema.GroupKind{Group: thing.Spec.Group, Kind: "Thing"}
	key := objects.Key{Group: gk.Group, Kind: gk.Kind, Name: "a"}
	f, _ := follow(t, e.config)
	f.Use("a", []schema.GroupKind{gk})
	require.NoError(t, e.admin.Create(t.Context(), thing))
	f.synced(t, gk)
	if s := f.State(gk); s.Version != "v1beta1" || s.Namespaced {
		t.Errorf("state %+v", s)
	}
	m, err := f.Mapping(gk, "")
	require.NoError(t, err)
	guards := absent()
	guards["labels"] = obj{cacheLabel: "True"}
	live, err := w.Apply(t.Context(), request(t, m, "", "a", guards, nil))
	require.NoError(t, err)
	f.watched(t, key, live.GetResourceVersion())
	listing := f.State(gk).Listing

	for _, served := range []bool{true, false} {
		require.NoError(t, retry.RetryOnConflict(retry.DefaultRetry, func() error { // with its status
			require.NoError(t, e.admin.Get(t.Context(), client.ObjectKeyFromObject(thing), thing))
			thing.Spec.Versions[1].Served = served
			return e.admin.Update(t.Context(), thing)
		}))
		want := map[bool]string{true: "v1", false: "v1beta1"}[served]
		eventually(t, "version "+want+" is watched", func() bool {
			s := f.State(gk)
			if !s.Synced {
				t.Error("a change of the version must not lose records")
			}
			return s.Version == want && s.Listing > listing && s.Err == nil
		})
		listing = f.State(gk).Listing
		f.watched(t, key, live.GetResourceVersion())
	}
	for _, told := range f.told(key) {
		if told == "" {
			t.Error("the object was reported as removed")
		}
	}
}

func TestConfirm(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a, b := e.configMap(t, "a"), e.configMap(t, "b")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "s", Labels: a.Labels}}
	require.NoError(t, e.admin.Create(t.Context(), secret))
	secretKey := objects.Key{Kind: "Secret", Namespace: e.namespace, Name: "s"}
	f, _ := follow(t, e.config)
	f.Use("a", []schema.GroupKind{configMapKind})
	f.synced(t, configMapKind)

	seen := func() map[objects.Key]string {
		return map[objects.Key]string{
			e.key("a"): a.ResourceVersion, e.key("b"): b.ResourceVersion, secretKey: secret.ResourceVersion,
		}
	}
	confirm := func(seen map[objects.Key]string, want bool, reason string) {
		t.Helper()
		got, err := f.Confirm(t.Context(), seen, "test="+e.namespace)
		if err != nil || got != want {
			t.Errorf("Confirm = %v, %v; want %v: %s", got, err, want, reason)
		}
	}
	confirm(seen(), true, "nothing changed")
	confirm(nil, true, "no request was sent")
	old := seen()
	e.set(t, a, "1")
	confirm(old, false, "an object changed")
	confirm(seen(), true, "the new state was seen")
	other := objects.Key{Kind: "ConfigMap", Namespace: e.namespace, Name: "c"}
	confirm(map[objects.Key]string{other: "1"}, false, "an object is absent")
	elsewhere := objects.Key{Kind: "ConfigMap", Namespace: "default", Name: "c"}
	confirm(map[objects.Key]string{elsewhere: "1", e.key("a"): a.ResourceVersion}, false, "an object in another namespace is absent")
	confirm(map[objects.Key]string{{Group: "no.example.com", Kind: "Thing", Name: "a"}: "1"}, false, "a kind is not served")
	require.NoError(t, e.admin.Delete(t.Context(), secret))
	confirm(seen(), false, "an object of another kind was deleted")

	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Confirm(over, seen(), "test="+e.namespace); err == nil {
		t.Error("an unreachable API server cannot confirm a deletion")
	}
}

// TestRelistsDoNotStarve: lists complete even if Relist is called all the time, and the list with
// the returned number arrives.
func TestRelistsDoNotStarve(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for i := range 50 {
		e.configMap(t, fmt.Sprintf("a-%d", i))
	}
	f, _ := follow(t, e.config)
	f.Use("a", []schema.GroupKind{configMapKind})
	f.synced(t, configMapKind)
	var version atomic.Int64
	f.mu.Lock()
	f.observe = func(objects.Key, *unstructured.Unstructured) *objects.Observed {
		return &objects.Observed{Trimmed: []byte(strconv.FormatInt(version.Load(), 10))}
	}
	f.mu.Unlock()
	var want int64
	for first := f.State(configMapKind).Listing; f.State(configMapKind).Listing < first+3; {
		version.Add(1)
		want = f.Relist(configMapKind)
	}
	eventually(t, "the last requested list", func() bool { return f.State(configMapKind).Listing >= want })
	for i := range 50 {
		obs, ok := f.Get(e.key(fmt.Sprintf("a-%d", i)))
		if !ok || string(obs.Trimmed) != strconv.FormatInt(version.Load(), 10) {
			t.Fatalf("a record is older than the last Relist: %+v", obs)
		}
	}
}
