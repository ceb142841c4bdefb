package packages

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

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/registry"
	"lockstep.run/lockstep/internal/loader/violation"
)

// bench tests attempts with loads that end on demand.
type bench struct {
	*attempts
	mu      sync.Mutex
	woken   chan types.NamespacedName
	release map[string]chan error // by image
}

func newBench() *bench {
	b := &bench{woken: make(chan types.NamespacedName, 1000), release: map[string]chan error{}}
	b.attempts = newAttempts(b.loadOne, func(key types.NamespacedName) { b.woken <- key }, func() time.Time { return start })
	return b
}

func (b *bench) gate(image string) chan error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.release[image] == nil {
		b.release[image] = make(chan error)
	}
	return b.release[image]
}

func (b *bench) loadOne(ctx context.Context, in Input) (*Content, error) {
	if strings.Contains(in.Image, "panic") {
		panic("hunter2")
	}
	select {
	case err := <-b.gate(in.Image):
		return newContent(), err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (b *bench) begin(uid, image string, change ...func(*corev1alpha1.Package)) {
	pkg := newPackage(change...)
	pkg.UID, pkg.Name, pkg.Spec.Image = types.UID(uid), uid, image
	b.start(context.Background(), Input{Package: pkg, Image: image}, fingerprint{spec: image}, "")
}

func (b *bench) wait(t *testing.T) string {
	t.Helper()
	select {
	case key := <-b.woken:
		return key.Name
	case <-time.After(10 * time.Second):
		t.Fatal("nobody was woken")
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
		"good":           {reason: "nothing to retry"},
		"pull failed":    {reason: "the registry may recover", err: &registry.PullError{}, retry: firstBackoff},
		"package broken": {reason: "the same bytes stay broken", err: fmt.Errorf("load: %w", violation.Violations{{}})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench()
			if b.of("a") != nil {
				t.Fatal("there is an attempt before the first one")
			}
			b.begin("a", image)
			if a := b.of("a"); a == nil || a.done || !a.started.Equal(start) {
				t.Fatalf("running: %+v", a)
			}
			b.gate(image) <- tc.err
			if got := b.wait(t); got != "a" {
				t.Errorf("woke %s", got)
			}
			a := b.of("a")
			if !a.done || !errors.Is(a.err, tc.err) {
				t.Errorf("%s: %+v", tc.reason, a)
			}
			if want := start.Add(tc.retry); tc.retry > 0 && !a.retry.Equal(want) || tc.retry == 0 && !a.retry.IsZero() {
				t.Errorf("%s: retry at %s", tc.reason, a.retry)
			}
			b.drop("a")
			if b.of("a") != nil {
				t.Error("dropped, yet still there")
			}
		})
	}
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	b := newBench()
	for _, want := range []time.Duration{10, 20, 40, 80, 160, 300, 300, 300} {
		b.begin("a", image)
		b.gate(image) <- &registry.PullError{}
		b.wait(t)
		if got := b.of("a").retry.Sub(start); got != want*time.Second {
			t.Errorf("got %s, want %ds", got, want)
		}
	}
	b.begin("a", "registry.test/shop:v2")
	b.gate("registry.test/shop:v2") <- &registry.PullError{}
	b.wait(t)
	if got := b.of("a").retry.Sub(start); got != firstBackoff {
		t.Errorf("a new image begins anew, got %s", got)
	}
	b.begin("a", "registry.test/shop:v2", retried("1"))
	b.gate("registry.test/shop:v2") <- &registry.PullError{}
	b.wait(t)
	if got := b.of("a").retry.Sub(start); got != firstBackoff {
		t.Errorf("a try that was asked for begins anew, got %s", got)
	}
}

func TestNewSpecSupersedesLoad(t *testing.T) {
	t.Parallel()
	b := newBench()
	b.begin("a", "registry.test/old")
	b.begin("a", "registry.test/new")
	b.gate("registry.test/new") <- nil
	b.wait(t)
	if a := b.of("a"); !a.done || a.fingerprint.spec != "registry.test/new" {
		t.Errorf("got %+v", a)
	}
	if len(b.woken) > 0 {
		t.Error("the load that was given up woke the package")
	}
}

// What a panic says may be a value that came from a Secret (invariant 8).
func TestPanicIsOnePackagesError(t *testing.T) {
	t.Parallel()
	b := newBench()
	b.begin("a", "registry.test/panic")
	b.wait(t)
	var caught *panics.Error
	if a := b.of("a"); !errors.As(a.err, &caught) || strings.Contains(a.err.Error(), "hunter2") || a.retry.IsZero() {
		t.Errorf("got %+v", a)
	}
}

// A dozen packages on a registry that hangs hold up no other, and wait without
// a goroutine each.
func TestHangingRegistryHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	b := newBench()
	for i := range 12 {
		b.begin(fmt.Sprintf("hangs-%d", i), "hanging.test/shop:v1")
	}
	b.begin("works", image)
	b.gate(image) <- nil
	if got := b.wait(t); got != "works" {
		t.Errorf("woke %s", got)
	}
	b.pool.mu.Lock()
	l := b.pool.hosts["hanging.test"]
	running, waiting := l.running, len(l.waiting)
	b.pool.mu.Unlock()
	if running != limits.PullsPerHost || waiting != 12-limits.PullsPerHost {
		t.Errorf("%d run, %d wait", running, waiting)
	}
	for range 12 {
		b.gate("hanging.test/shop:v1") <- nil
		b.wait(t)
	}
	// A load that waits and is given up does not run.
	for i := range 12 {
		b.begin(fmt.Sprintf("again-%d", i), "hanging.test/shop:v1")
	}
	for i := range 12 {
		b.drop(types.UID(fmt.Sprintf("again-%d", i)))
	}
	deadline := time.Now().Add(10 * time.Second)
	for {
		b.pool.mu.Lock()
		lanes := len(b.pool.hosts)
		b.pool.mu.Unlock()
		if lanes == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("lanes of registries that nobody uses stay")
		}
		time.Sleep(time.Millisecond)
	}
}

func TestInputIsACopy(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 1)
	gate := make(chan struct{})
	a := newAttempts(func(_ context.Context, in Input) (*Content, error) {
		<-gate
		seen <- in.Package.GetName()
		return nil, nil
	}, func(types.NamespacedName) {}, time.Now)
	pkg := newPackage()
	a.start(context.Background(), Input{Package: pkg}, fingerprint{}, "")
	pkg.Name = "changed by a later pass"
	close(gate)
	if got := <-seen; got != "shop" {
		t.Errorf("the load saw %q", got)
	}
}

// TestLoadsAwaitTheirTurn: while much is under way no other package is loaded, but
// for those that have waited for long; one that was given up meanwhile is not.
func TestLoadsAwaitTheirTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var underway atomic.Int64
		underway.Store(limits.PackagesUnderway - 1)
		var mu sync.Mutex
		var loaded []string
		a := newAttempts(func(_ context.Context, in Input) (*Content, error) {
			mu.Lock()
			defer mu.Unlock()
			loaded = append(loaded, in.Package.GetName())
			return newContent(), nil
		}, func(types.NamespacedName) {}, time.Now)
		a.underway = func() int { return int(underway.Load()) }
		begin := func(name string) {
			pkg := newPackage()
			pkg.UID, pkg.Name = types.UID(name), name
			a.start(t.Context(), Input{Package: pkg, Image: image}, fingerprint{}, "")
		}
		want := func(when string, names ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if diff := cmp.Diff(names, loaded); diff != "" {
				t.Errorf("%s: -want +got\n%s", when, diff)
			}
		}
		begin("first")
		want("there is room", "first")
		underway.Add(1)
		begin("second")
		time.Sleep(limits.TurnMax / 2)
		want("there is none", "first")
		underway.Add(-1)
		time.Sleep(limits.TurnPeriod)
		want("there is some again", "first", "second")
		underway.Add(1)
		begin("third")
		begin("given up")
		a.drop("given up")
		time.Sleep(limits.TurnMax)
		want("rollouts hang", "first", "second", "third")
	})
}

// TestDeployedContentIsForgotten: what a status says of a content is kept until it
// says so, and the objects are not.
func TestDeployedContentIsForgotten(t *testing.T) {
	t.Parallel()
	b := newBench()
	b.begin("a", image)
	b.deployed("a", start)
	b.gate(image) <- nil
	b.wait(t)
	if a := b.of("a"); len(a.content.Template.Phases) == 0 || !a.deployed.IsZero() {
		t.Fatalf("before it is deployed: %+v", a)
	}
	b.deployed("a", start)
	want := newContent()
	want.Template, want.Labels, want.Sealing = corev1alpha1.ObjectSetTemplateSpec{}, nil, nil
	if a := b.of("a"); !a.deployed.Equal(start) || !cmp.Equal(want, a.content) {
		t.Errorf("deployed at %s: -want +got\n%s", a.deployed, cmp.Diff(want, a.content))
	}
}

func TestRegistryOf(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		image: "registry.test", "shop": "index.docker.io", "localhost:5000/a@" + digest: "localhost:5000", "!": "", "": "",
	} {
		if got := registryOf(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestHappenings(t *testing.T) {
	t.Parallel()
	content := newContent()
	warned := newContent()
	warned.Warnings = []string{"spec.foo is not known"}
	for name, tc := range map[string]struct {
		reason   string
		was, is  string // conditions as Type=Status/Reason
		unpacked bool
		content  *Content
		want     string
	}{
		"installed":    {reason: "one event for the image", is: "Available=False/ObjectSetUnready", unpacked: true, content: content, want: "Normal/Unpacked"},
		"with typo":    {reason: "what was ignored is named", unpacked: true, content: warned, want: "Warning/FieldsIgnored Normal/Unpacked"},
		"both":         {reason: "one event where one status says both", is: "Available=True/Available", unpacked: true, content: content, want: "Normal/Available"},
		"available":    {reason: "one for the rollout", was: "Available=False/X", is: "Available=True/Available", want: "Normal/Available"},
		"unavailable":  {reason: "a regression", was: "Available=True/Available", is: "Available=False/ProbeFailure", want: "Warning/Unavailable"},
		"not yet":      {reason: "an install is no regression", is: "Available=False/ObjectSetUnready"},
		"other reason": {reason: "no transition", was: "Available=False/X", is: "Available=False/Y"},
		"wrong":        {reason: "once", is: "Invalid=True/LoadError Unpacked=False/LoadError", want: "Warning/LoadError"},
		"still wrong":  {reason: "no transition", was: "Invalid=True/LoadError", is: "Invalid=True/LoadError"},
		"no image":     {reason: "once, not at each retry", is: "Unpacked=False/ImagePullBackOff", want: "Warning/ImagePullBackOff"},
		"still no":     {reason: "a retry", was: "Unpacked=False/ImagePullBackOff", is: "Unpacked=False/ImagePullBackOff"},
		"nothing":      {reason: "no transition", was: "Available=True/Available", is: "Available=True/Available"},
	} {
		was, is := statusWith(tc.was), statusWith(tc.is)
		o := outcome{step: stepSettle, content: tc.content}
		if tc.unpacked {
			o.step, is.UnpackedHash = stepDeploy, "new"
		}
		var got []string
		for _, h := range happenings(was, is, o) {
			got = append(got, h.kind+"/"+h.reason)
		}
		if joined := strings.Join(got, " "); joined != tc.want {
			t.Errorf("%s: got %q, want %q (%s)", name, joined, tc.want, tc.reason)
		}
	}
}

// TestBeginning: few packages report soon that they are on their way; where many
// are, a status of each would hold up what matters.
func TestBeginning(t *testing.T) {
	t.Parallel()
	for packages, want := range map[int]time.Duration{
		0: limits.PackageStatusInterval, 1: limits.PackageStatusInterval, 20: limits.PackageStatusInterval,
		100: 5 * time.Second, 1000: limits.PackageStatusMax,
	} {
		if got := beginning(packages); got != want {
			t.Errorf("%d packages: %s, want %s", packages, got, want)
		}
	}
}

func TestInFlight(t *testing.T) {
	t.Parallel()
	results := map[string]error{"loads": nil, "fails": errors.New("no such image")}
	ended := make(chan types.NamespacedName, len(results))
	a := newAttempts(func(_ context.Context, in Input) (*Content, error) {
		return nil, results[in.Package.GetName()]
	}, func(key types.NamespacedName) { ended <- key }, time.Now)
	for range 2 { // an attempt takes the place of the one before
		for name := range results {
			pkg := newPackage()
			pkg.SetName(name)
			pkg.SetUID(types.UID(name))
			a.start(t.Context(), Input{Package: pkg}, fingerprint{}, "")
		}
		for range results {
			<-ended
		}
		if got := a.inFlight(); got != 1 {
			t.Errorf("%d packages are on their way, want the one that was loaded", got)
		}
	}
	if a.drop("loads"); a.inFlight() != 0 {
		t.Error("a package counts as on its way after its status was written")
	}
	if a.drop("fails"); a.inFlight() != 0 {
		t.Error("a package that was given up counts")
	}
}

func statusWith(conds string) *corev1alpha1.PackageStatus {
	status := &corev1alpha1.PackageStatus{}
	for _, c := range strings.Fields(conds) {
		typ, rest, _ := strings.Cut(c, "=")
		value, reason, _ := strings.Cut(rest, "/")
		status.Conditions = append(status.Conditions, conditionOf(typ, value, reason))
	}
	return status
}

// TestLongLoadsHoldUpNoOther: a load that is aborted because it takes long is repeated in
// another queue than the others of its registry, and the abort is not reported.
func TestLongLoadsHoldUpNoOther(t *testing.T) {
	t.Parallel()
	b := newBench()
	load := b.load
	b.load = func(ctx context.Context, in Input) (*Content, error) {
		if strings.Contains(in.Image, "long") && in.Level == 0 {
			return nil, fmt.Errorf("load the package: %w", &queueing.LaterError{Level: 1})
		}
		return load(ctx, in)
	}
	const long = "registry.test/long:v1"
	for i := range 2 * limits.PullsPerHost {
		b.begin(fmt.Sprintf("long-%d", i), long)
	}
	b.begin("short", "registry.test/short:v1")
	b.gate("registry.test/short:v1") <- nil
	if got := b.wait(t); got != "short" {
		t.Errorf("woke %s", got)
	}
	for range 2 * limits.PullsPerHost {
		b.gate(long) <- nil
		uid := b.wait(t)
		if a := b.of(types.UID(uid)); !a.done || a.err != nil || a.content == nil {
			t.Errorf("%s ended with %+v", uid, a)
		}
	}
	b.begin("dropped", long)
	b.drop("dropped")
	b.begin("last", "registry.test/short:v1")
	b.gate("registry.test/short:v1") <- nil
	if got := b.wait(t); got != "last" {
		t.Errorf("woke %s", got)
	}
}
