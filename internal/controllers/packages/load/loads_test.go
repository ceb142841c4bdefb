package load

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/choice"
	"lockstep.run/lockstep/internal/kube/background"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/registry"
	"lockstep.run/lockstep/internal/loader/violation"
	"lockstep.run/lockstep/test/require"
)

const (
	image  = "registry.test/shop:v1"
	digest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
)

var (
	origin = choice.Origin{Image: image}
	start  = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	env    = manifestsv1alpha1.PackageEnvironment{Kubernetes: manifestsv1alpha1.PackageEnvironmentKubernetes{Version: "v1.36.0"}}
)

// newPackage returns a Package of generation 2 that was not reconciled yet.
func newPackage(change ...func(*corev1alpha1.Package)) *corev1alpha1.Package {
	pkg := &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "shop", UID: "pkg-uid", Generation: 2}}
	pkg.Spec.Image = image
	for _, c := range change {
		c(pkg)
	}
	return pkg
}

// named returns a Package of that name, of an image.
func named(name, image string, change ...func(*corev1alpha1.Package)) *corev1alpha1.Package {
	pkg := newPackage(change...)
	pkg.UID, pkg.Name, pkg.Spec.Image = types.UID(name), name, image
	return pkg
}

// retried sets the retry annotation.
func retried(value string) func(*corev1alpha1.Package) {
	return func(pkg *corev1alpha1.Package) {
		pkg.Annotations = map[string]string{corev1alpha1.RetryAnnotation: value}
	}
}

func paused(pkg *corev1alpha1.Package) { pkg.Spec.Paused = true }

func raw(json string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(json)} }

func printOf(pkg corev1alpha1.GenericPackage) Fingerprint {
	f, err := FingerprintOf(pkg, choice.Origin{Image: pkg.PackageSpec().Image}, env, nil, "")
	if err != nil {
		panic(err)
	}
	return f
}

// bench runs loads that end on demand.
type bench struct {
	*Loads
	mu      sync.Mutex
	woken   chan types.NamespacedName
	release map[string]chan error // by image
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{release: map[string]chan error{}, woken: make(chan types.NamespacedName, 1000)}
	b.Loads = New(Setting{
		Pipeline: &Pipeline{}, Now: func() time.Time { return start }, Enqueue: func(key types.NamespacedName) { b.woken <- key },
		Underway: func(string) (all, own int) { return 0, 0 }, Cache: listed{packages: &[]corev1alpha1.GenericPackage{}},
	})
	b.Load, b.Life = b.loadOne, t.Context()
	return b
}

func (b *bench) of(name string) *Package {
	pkg := named(name, image)
	if p := b.packages[client.ObjectKeyFromObject(pkg)]; p != nil {
		return p
	}
	return b.Meet(pkg)
}

// startLoad starts to load a Package, in place of its loaded content.
func (b *bench) startLoad(t *testing.T, pkg *corev1alpha1.Package) {
	t.Helper()
	a := &Attempt{In: Input{Fingerprint: Fingerprint{Spec: pkg.Spec.Image}}, RetryValue: background.RetryValue(pkg), Started: start}
	b.Start(b.of(pkg.Name), Request{Pkg: pkg, Image: pkg.Spec.Image}, a, b.last(pkg.Name))
}

// last returns the attempt of a Package, or nil.
func (b *bench) last(name string) *Attempt {
	a, _ := b.Last(b.of(name))
	return a
}

func (b *bench) drop(name string) { b.Drop(b.of(name)) }

func (b *bench) gate(image string) chan error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.release[image] == nil {
		b.release[image] = make(chan error)
	}
	return b.release[image]
}

func (b *bench) loadOne(ctx context.Context, in Request) (*Content, error) {
	if strings.Contains(in.Image, "panic") {
		panic("hunter2")
	}
	select {
	case err := <-b.gate(in.Image):
		return &Content{}, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (b *bench) wait(t *testing.T) string {
	t.Helper()
	select {
	case key := <-b.woken:
		return key.Name
	case <-time.After(10 * time.Second):
		t.Fatal("no Package was enqueued")
		return ""
	}
}

func TestAttempt(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		err    error
		retry  time.Duration
	}{
		"good":           {reason: "no load to retry"},
		"pull failed":    {reason: "the registry can recover", err: &registry.PullError{}, retry: limits.LoadBackoffMin},
		"package broken": {reason: "the same bytes stay broken", err: fmt.Errorf("load: %w", violation.Violations{{}})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			if b.last("a") != nil {
				t.Fatal("there is an attempt before the first one")
			}
			b.startLoad(t, named("a", image))
			if a := b.last("a"); a == nil || a.Done || !a.Started.Equal(start) {
				t.Fatalf("running: %+v", a)
			}
			b.gate(image) <- tc.err
			require.Equal(t, "a", b.wait(t), "woke")
			a := b.last("a")
			if !a.Done || !errors.Is(a.Err, tc.err) {
				t.Errorf("%s: %+v", tc.reason, a)
			}
			if want := start.Add(tc.retry); tc.retry > 0 && !a.Retry.Equal(want) || tc.retry == 0 && !a.Retry.IsZero() {
				t.Errorf("%s: retry at %s", tc.reason, a.Retry)
			}
			b.drop("a")
			if b.last("a") != nil {
				t.Error("dropped, yet still there")
			}
		})
	}
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, want := range []time.Duration{10, 20, 40, 80, 160, 300, 300, 300} {
		b.startLoad(t, named("a", image))
		b.gate(image) <- &registry.PullError{}
		b.wait(t)
		require.Equal(t, want*time.Second, b.last("a").Retry.Sub(start))
	}
	b.startLoad(t, named("a", "registry.test/shop:v2"))
	b.gate("registry.test/shop:v2") <- &registry.PullError{}
	b.wait(t)
	require.Equal(t, limits.LoadBackoffMin, b.last("a").Retry.Sub(start), "a new image starts again")
	b.startLoad(t, named("a", "registry.test/shop:v2", retried("1")))
	b.gate("registry.test/shop:v2") <- &registry.PullError{}
	b.wait(t)
	require.Equal(t, limits.LoadBackoffMin, b.last("a").Retry.Sub(start), "a requested try starts again")
}

func TestNewSpecSupersedesLoad(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.startLoad(t, named("a", "registry.test/old"))
	b.startLoad(t, named("a", "registry.test/new"))
	b.gate("registry.test/new") <- nil
	b.wait(t)
	if a := b.last("a"); !a.Done || a.In.Fingerprint.Spec != "registry.test/new" {
		t.Errorf("got %+v", a)
	}
	if len(b.woken) > 0 {
		t.Error("the load that was given up woke the package")
	}
}

// The text of a panic can be a value from a Secret (invariant 8).
func TestPanicIsOnePackagesError(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.startLoad(t, named("a", "registry.test/panic"))
	b.wait(t)
	var caught *panics.Error
	if a := b.last("a"); !errors.As(a.Err, &caught) || strings.Contains(a.Err.Error(), "hunter2") || a.Retry.IsZero() {
		t.Errorf("got %+v", a)
	}
}

// A dozen packages on a registry that hangs hold up no other, and wait without
// a goroutine each.
func TestHangingRegistryHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for i := range 12 {
		b.startLoad(t, named(fmt.Sprintf("hangs-%d", i), "hanging.test/shop:v1"))
	}
	b.startLoad(t, named("works", image))
	b.gate(image) <- nil
	require.Equal(t, "works", b.wait(t), "woke")
	running, waiting := b.hosts.Depth("hanging.test")
	if running != limits.LoadsPerHost || waiting != 12-limits.LoadsPerHost {
		t.Errorf("%d run, %d wait", running, waiting)
	}
	for range 12 {
		b.gate("hanging.test/shop:v1") <- nil
		b.wait(t)
	}
	// A load that waits and is given up does not run.
	for i := range 12 {
		b.startLoad(t, named(fmt.Sprintf("again-%d", i), "hanging.test/shop:v1"))
	}
	for i := range 12 {
		b.drop(fmt.Sprintf("again-%d", i))
	}
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		running, waiting := b.hosts.Depth("hanging.test")
		return running+waiting == 0, nil
	})
	if err != nil {
		t.Fatal("queues of registries without users stay")
	}
}

// TestLoadsAwaitAdmission: during many loads no other package is loaded, except the ones that have
// waited for long. A load that was given up meanwhile does not start.
func TestLoadsAwaitAdmission(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var underway atomic.Int64
		underway.Store(limits.PackagesUnderway - 1)
		var mu sync.Mutex
		var loaded []string
		r := newBench(t)
		r.Load = func(_ context.Context, in Request) (*Content, error) {
			mu.Lock()
			defer mu.Unlock()
			loaded = append(loaded, in.Pkg.GetName())
			return &Content{}, nil
		}
		r.Underway = func(string) (all, own int) { return int(underway.Load()), int(underway.Load()) }
		begin := func(name string) { r.startLoad(t, named(name, image)) }
		want := func(when string, names ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			require.Equal(t, names, loaded, when)
		}
		begin("first")
		want("there is room", "first")
		underway.Add(1)
		begin("second")
		time.Sleep(limits.AdmissionWait / 2)
		want("there is none", "first")
		underway.Add(-1)
		time.Sleep(admissionPoll)
		want("there is some again", "first", "second")
		underway.Add(1)
		begin("third")
		begin("given up")
		r.drop("given up")
		time.Sleep(limits.AdmissionWait)
		want("rollouts hang", "first", "second", "third")
	})
}

func TestAdmitted(t *testing.T) {
	t.Parallel()
	const most, few = limits.PackagesUnderway, limits.PackagesUnderwayOwn
	for _, tc := range []struct {
		reason   string
		all, own int
		want     bool
	}{
		{"no load is underway", 0, 0, true},
		{"there is room", most - 1, most - 1, true},
		{"the namespace has all of it", 1000, 1000, false},
		{"the namespace has most of it", 1000, 990, false},
		{"another namespace has all of it", 1000, 0, true},
		{"another namespace has most of it", 1000, few - 1, true},
		{"both have much", 1000, few, false},
		{"another namespace has some of it, which alone would leave room", most, 1, false},
	} {
		require.Equal(t, tc.want, admitted(tc.all, tc.own), tc.reason)
	}
}

func TestHostOf(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		image: "registry.test", "shop": "index.docker.io", "localhost:5000/a@" + digest: "localhost:5000", "!": "", "": "",
	} {
		require.Equal(t, want, hostOf(in), in)
	}
}

func TestInFlight(t *testing.T) {
	t.Parallel()
	results := map[string]error{"loads": nil, "fails": errors.New("no such image")}
	r := newBench(t)
	r.Load = func(_ context.Context, in Request) (*Content, error) { return nil, results[in.Pkg.GetName()] }
	inFlight := r.Loading
	for range 2 { // an attempt takes the place of the one before
		for name := range results {
			r.startLoad(t, named(name, image))
		}
		for range results {
			r.wait(t)
		}
		require.Equal(t, 1, inFlight(), "packages are on their way")
	}
	if r.drop("loads"); inFlight() != 0 {
		t.Error("a package counts as on its way after its status was written")
	}
	if r.drop("fails"); inFlight() != 0 {
		t.Error("a package that was given up counts")
	}
}

// TestLongLoadsHoldUpNoOther: a load that is cancelled because it takes long is repeated in another
// queue than the others of its registry, once the status has a record of it, and that is not
// reported.
func TestLongLoadsHoldUpNoOther(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	loadOne := b.Load
	b.Load = func(ctx context.Context, in Request) (*Content, error) {
		if strings.Contains(in.Image, "long") && !in.Long {
			return nil, fmt.Errorf("load the package: %w", queueing.ErrLong)
		}
		return loadOne(ctx, in)
	}
	const long = "registry.test/long:v1"
	for i := range 2 * limits.LoadsPerHost {
		b.startLoad(t, named(fmt.Sprintf("long-%d", i), long))
	}
	for range 2 * limits.LoadsPerHost {
		name := b.wait(t)
		if a := b.last(name); !a.Out.Large || a.Done {
			t.Errorf("%s is %+v", name, a)
		} else {
			b.Resume(b.of(name), a)
		}
	}
	b.startLoad(t, named("short", "registry.test/short:v1"))
	b.gate("registry.test/short:v1") <- nil
	require.Equal(t, "short", b.wait(t), "woke")
	for range 2 * limits.LoadsPerHost {
		b.gate(long) <- nil
		uid := b.wait(t)
		if a := b.last(uid); !a.Done || a.Err != nil || a.Out.Content == nil {
			t.Errorf("%s ended with %+v", uid, a)
		}
	}
	b.startLoad(t, named("dropped", long))
	b.wait(t)
	b.drop("dropped")
	b.startLoad(t, named("last", "registry.test/short:v1"))
	b.gate("registry.test/short:v1") <- nil
	require.Equal(t, "last", b.wait(t), "woke")
}

// Spread looks stay within the interval, and not at its start.
func TestSpread(t *testing.T) {
	t.Parallel()
	for range 100 {
		if got := spread(time.Minute); got < 30*time.Second || got >= time.Minute {
			t.Fatal(got)
		}
	}
}

func TestTagged(t *testing.T) {
	t.Parallel()
	for ref, want := range map[string]bool{"a": true, "a:b": true, "a@" + digest: false, "a:b@" + digest: false, "A!": false} {
		require.Equal(t, want, Tagged(ref), ref)
	}
}

func TestFingerprint(t *testing.T) {
	t.Parallel()
	base := newPackage(func(p *corev1alpha1.Package) { p.Spec.Config = raw(`{"b":1.0,"a":{"y":2,"x":null}}`) })
	for name, tc := range map[string]struct {
		reason string
		change func(*corev1alpha1.Package)
		same   bool
	}{
		"order of keys": {"the API server sorts them", func(p *corev1alpha1.Package) { p.Spec.Config = raw(`{"a": {"x":null,"y":2}, "b": 1}`) }, true},
		"pause":         {"not content", paused, true},
		"labels":        {"not content", func(p *corev1alpha1.Package) { p.Labels = map[string]string{"a": "b"} }, true},
		"limits":        {"followed without a load", func(p *corev1alpha1.Package) { p.Spec.RevisionHistoryLimit = new(int32) }, true},
		"image":         {"content", func(p *corev1alpha1.Package) { p.Spec.Image += "2" }, false},
		"component":     {"content", func(p *corev1alpha1.Package) { p.Spec.Component = "x" }, false},
		"config value":  {"content", func(p *corev1alpha1.Package) { p.Spec.Config = raw(`{"b":1,"a":{"y":3,"x":null}}`) }, false},
		"no config":     {"content", func(p *corev1alpha1.Package) { p.Spec.Config = nil }, false},
		"slicing": {"the template changes", func(p *corev1alpha1.Package) {
			p.Annotations = map[string]string{corev1alpha1.ChunkingStrategyAnnotation: "NoOp"}
		}, false},
	} {
		changed := base.DeepCopy()
		tc.change(changed)
		if same := printOf(base) == printOf(changed); same != tc.same {
			t.Errorf("%s: same is %t (%s)", name, same, tc.reason)
		}
	}
	// The hash is stored: a different one makes every package load again.
	if got, want := printOf(base).String(), "v1-78712872a00cdaaf0ede59cab347690d-89fe91ff0efff26ab39dd193a3fde086"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if back, ok := parseFingerprint(printOf(base).String()); !ok || back != printOf(base) {
		t.Errorf("read back as %v", back)
	}
}

func TestForeignHashes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason     string
		generation int64
		invalid    bool
		want       Unpacked
	}{
		"current":          {"moving in from another engine does not pull", 2, false, UnpackedCurrent},
		"of an older spec": {"it does not describe this one", 1, false, UnpackedNever},
		"invalid":          {"that engine remembered failures as well", 2, true, UnpackedNever},
	} {
		pkg := newPackage()
		pkg.Status.UnpackedHash = strings.Repeat("0f", 32)
		conditions.Set(&pkg.Status.Conditions, tc.generation, corev1alpha1.ConditionUnpacked, true, corev1alpha1.ReasonUnpackSuccess, "")
		if tc.invalid {
			conditions.Set(&pkg.Status.Conditions, tc.generation, corev1alpha1.ConditionInvalid, true, corev1alpha1.ReasonLoadError, "")
		}
		require.Equal(t, tc.want, Compare(pkg, printOf(pkg)), name)
	}
}

// Each field that a package is rendered from changes the fingerprint; other fields do not.
func TestFingerprintCoversTheSpec(t *testing.T) {
	t.Parallel()
	base := printOf(newPackage())
	for name, change := range map[string]func(*corev1alpha1.PackageSpec){
		"configFrom": func(s *corev1alpha1.PackageSpec) {
			s.ConfigFrom = []corev1alpha1.ValueSource{{ConfigMapKeyRef: &corev1alpha1.ConfigMapKeyReference{Name: "a", Key: "b"}}}
		},
		"patches":             func(s *corev1alpha1.PackageSpec) { s.Patches = []corev1alpha1.PackagePatch{{Patch: "x"}} },
		"commonMetadata":      func(s *corev1alpha1.PackageSpec) { s.CommonMetadata = &corev1alpha1.CommonMetadata{} },
		"defaultNamespace":    func(s *corev1alpha1.PackageSpec) { s.DefaultNamespace = "x" },
		"collisionProtection": func(s *corev1alpha1.PackageSpec) { s.CollisionProtection = corev1alpha1.CollisionProtectionNone },
	} {
		if got := printOf(newPackage(func(p *corev1alpha1.Package) { change(&p.Spec) })); got.Spec == base.Spec || got.Environment != base.Environment {
			t.Errorf("%s: %s, without %s", name, got, base)
		}
	}
	for name, change := range map[string]func(*corev1alpha1.PackageSpec){
		"imagePullSecrets": func(s *corev1alpha1.PackageSpec) {
			s.ImagePullSecrets = []corev1alpha1.LocalSecretReference{{Name: "a"}}
		},
		"imagePullPolicy": func(s *corev1alpha1.PackageSpec) { s.ImagePullPolicy = corev1alpha1.ImagePullPolicyNever },
		"driftPolicy":     func(s *corev1alpha1.PackageSpec) { s.DriftPolicy = corev1alpha1.DriftPolicyReport },
		"deletionPolicy":  func(s *corev1alpha1.PackageSpec) { s.DeletionPolicy = corev1alpha1.DeletionPolicyOrphan },
	} {
		require.Equal(t, base, printOf(newPackage(func(p *corev1alpha1.Package) { change(&p.Spec) })), name)
	}
	one, err := FingerprintOf(newPackage(), origin, env, map[string]string{"Secret team/a": "uid/1"}, "")
	two, err2 := FingerprintOf(newPackage(), origin, env, map[string]string{"Secret team/a": "uid/2"}, "")
	if errors.Join(err, err2) != nil || one == two || one.Spec != base.Spec || one.Environment == base.Environment {
		t.Errorf("a changed source is not a change of the spec: %s, %s, %s", base, one, two)
	}
	one, err = FingerprintOf(newPackage(), origin, env, nil, "a/=b/;0")
	two, err2 = FingerprintOf(newPackage(), origin, env, nil, "a/=c/;0")
	if errors.Join(err, err2) != nil || one == two || one == base || one.Spec != base.Spec {
		t.Errorf("a change of the manager's overrides renders packages again: %s, %s, %s", base, one, two)
	}
}
