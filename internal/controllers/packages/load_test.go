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
	"k8s.io/apimachinery/pkg/util/wait"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/registry"
	"lockstep.run/lockstep/internal/loader/violation"
)

// bench runs loads that end on demand.
type bench struct {
	*Reconciler
	mu      sync.Mutex
	woken   chan types.NamespacedName
	release map[string]chan error // by image
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{release: map[string]chan error{}}
	b.Reconciler, b.woken = newReconciler(t)
	b.load = b.loadOne
	return b
}

// named returns a Package of that name, of an image.
func named(name, image string, change ...func(*corev1alpha1.Package)) *corev1alpha1.Package {
	pkg := newPackage(change...)
	pkg.UID, pkg.Name, pkg.Spec.Image = types.UID(name), name, image
	return pkg
}

// begin starts to load a Package, in place of the content that is loaded for it.
func (r *Reconciler) begin(t *testing.T, pkg *corev1alpha1.Package) {
	t.Helper()
	s := r.of(pkg)
	s.step, s.fingerprint = stepLoad, fingerprint{spec: pkg.Spec.Image}
	if err := s.next(s.startLoad)(t.Context()); err != nil || s.step != stepLoad {
		t.Fatal(s.why, err)
	}
}

// last returns the attempt of a Package, or nil.
func (r *Reconciler) last(name string) *attempt { return r.of(named(name, image)).attempt }

func (r *Reconciler) drop(name string) { r.of(named(name, image)).dropAttempt() }

func (b *bench) gate(image string) chan error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.release[image] == nil {
		b.release[image] = make(chan error)
	}
	return b.release[image]
}

func (b *bench) loadOne(ctx context.Context, in input) (*content, error) {
	if strings.Contains(in.image, "panic") {
		panic("hunter2")
	}
	select {
	case err := <-b.gate(in.image):
		return newContent(), err
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
		"good":           {reason: "nothing to retry"},
		"pull failed":    {reason: "the registry may recover", err: &registry.PullError{}, retry: limits.LoadBackoffMin},
		"package broken": {reason: "the same bytes stay broken", err: fmt.Errorf("load: %w", violation.Violations{{}})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			if b.last("a") != nil {
				t.Fatal("there is an attempt before the first one")
			}
			b.begin(t, named("a", image))
			if a := b.last("a"); a == nil || a.Done || !a.Started.Equal(start) {
				t.Fatalf("running: %+v", a)
			}
			b.gate(image) <- tc.err
			if got := b.wait(t); got != "a" {
				t.Errorf("woke %s", got)
			}
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
		b.begin(t, named("a", image))
		b.gate(image) <- &registry.PullError{}
		b.wait(t)
		if got := b.last("a").Retry.Sub(start); got != want*time.Second {
			t.Errorf("got %s, want %ds", got, want)
		}
	}
	b.begin(t, named("a", "registry.test/shop:v2"))
	b.gate("registry.test/shop:v2") <- &registry.PullError{}
	b.wait(t)
	if got := b.last("a").Retry.Sub(start); got != limits.LoadBackoffMin {
		t.Errorf("a new image begins again, got %s", got)
	}
	b.begin(t, named("a", "registry.test/shop:v2", retried("1")))
	b.gate("registry.test/shop:v2") <- &registry.PullError{}
	b.wait(t)
	if got := b.last("a").Retry.Sub(start); got != limits.LoadBackoffMin {
		t.Errorf("a try that was asked for begins again, got %s", got)
	}
}

func TestNewSpecSupersedesLoad(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.begin(t, named("a", "registry.test/old"))
	b.begin(t, named("a", "registry.test/new"))
	b.gate("registry.test/new") <- nil
	b.wait(t)
	if a := b.last("a"); !a.Done || a.In.fingerprint.spec != "registry.test/new" {
		t.Errorf("got %+v", a)
	}
	if len(b.woken) > 0 {
		t.Error("the load that was given up woke the package")
	}
}

// The text of a panic may be a value that came from a Secret (invariant 8).
func TestPanicIsOnePackagesError(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.begin(t, named("a", "registry.test/panic"))
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
		b.begin(t, named(fmt.Sprintf("hangs-%d", i), "hanging.test/shop:v1"))
	}
	b.begin(t, named("works", image))
	b.gate(image) <- nil
	if got := b.wait(t); got != "works" {
		t.Errorf("woke %s", got)
	}
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
		b.begin(t, named(fmt.Sprintf("again-%d", i), "hanging.test/shop:v1"))
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

func TestInputIsACopy(t *testing.T) {
	t.Parallel()
	seen, gate := make(chan string, 1), make(chan struct{})
	r, _ := newReconciler(t)
	r.load = func(_ context.Context, in input) (*content, error) {
		<-gate
		seen <- in.pkg.GetName()
		return nil, nil
	}
	pkg := newPackage()
	r.begin(t, pkg)
	pkg.Name = "changed by a later pass"
	close(gate)
	if got := <-seen; got != "shop" {
		t.Errorf("the load saw %q", got)
	}
}

// TestLoadsAwaitAdmission: while much is under way no other package is loaded, but
// for those that have waited for long; one that was given up meanwhile is not.
func TestLoadsAwaitAdmission(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var underway atomic.Int64
		underway.Store(limits.PackagesUnderway - 1)
		var mu sync.Mutex
		var loaded []string
		r, _ := newReconciler(t)
		r.load = func(_ context.Context, in input) (*content, error) {
			mu.Lock()
			defer mu.Unlock()
			loaded = append(loaded, in.pkg.GetName())
			return newContent(), nil
		}
		r.Underway = func(string) (all, own int) { return int(underway.Load()), int(underway.Load()) }
		begin := func(name string) { r.begin(t, named(name, image)) }
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
		time.Sleep(limits.AdmissionWait / 2)
		want("there is none", "first")
		underway.Add(-1)
		time.Sleep(limits.AdmissionPoll)
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
		{"nothing is underway", 0, 0, true},
		{"there is room", most - 1, most - 1, true},
		{"the namespace has all of it", 1000, 1000, false},
		{"the namespace has most of it", 1000, 990, false},
		{"another namespace has all of it", 1000, 0, true},
		{"another namespace has most of it", 1000, few - 1, true},
		{"both have much", 1000, few, false},
		{"another namespace has some of it, which alone would leave room", most, 1, false},
	} {
		if got := admitted(tc.all, tc.own); got != tc.want {
			t.Errorf("%s: %t", tc.reason, got)
		}
	}
}

// TestDeployedContentIsForgotten: the summary for the status is kept until that is
// written, and the objects are not.
func TestDeployedContentIsForgotten(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.begin(t, named("a", image))
	b.gate(image) <- nil
	b.wait(t)
	s := b.of(named("a", image))
	if a := s.attempt; len(a.Out.content.template.Phases) == 0 || !a.Out.deployed.IsZero() {
		t.Fatalf("before it is deployed: %+v", a)
	}
	b.Client, b.Reader = secretServer(t), secretServer(t)
	if s.step = stepDeploy; s.deploy(t.Context()) != nil || s.writeErr != nil {
		t.Fatal(s.writeErr)
	}
	want := newContent()
	want.template, want.labels, want.sealing = corev1alpha1.ObjectSetTemplateSpec{}, nil, nil
	diff := cmp.Diff(want, b.last("a").Out.content, cmp.AllowUnexported(content{}))
	if a := b.last("a"); !a.Out.deployed.Equal(start) || diff != "" {
		t.Errorf("deployed at %s: -want +got\n%s", a.Out.deployed, diff)
	}
}

func TestHostOf(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		image: "registry.test", "shop": "index.docker.io", "localhost:5000/a@" + digest: "localhost:5000", "!": "", "": "",
	} {
		if got := hostOf(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestTransitionEvents(t *testing.T) {
	t.Parallel()
	loaded, warned := newContent(), newContent()
	warned.warnings = []string{"spec.foo is not known"}
	for name, tc := range map[string]struct {
		reason   string
		was, is  string // conditions as Type=Status/Reason
		unpacked bool
		content  *content
		want     string
	}{
		"installed":    {reason: "one event for the image", is: "Available=False/ObjectSetUnready", unpacked: true, content: loaded, want: "Normal/Unpacked"},
		"with typo":    {reason: "ignored fields are named", unpacked: true, content: warned, want: "Warning/FieldsIgnored Normal/Unpacked"},
		"both":         {reason: "one event where one status says both", is: "Available=True/Available", unpacked: true, content: loaded, want: "Normal/Available"},
		"available":    {reason: "one for the rollout", was: "Available=False/X", is: "Available=True/Available", want: "Normal/Available"},
		"unavailable":  {reason: "a regression", was: "Available=True/Available", is: "Available=False/ProbeFailure", want: "Warning/Unavailable"},
		"not yet":      {reason: "an install is no regression", is: "Available=False/ObjectSetUnready"},
		"other reason": {reason: "no transition", was: "Available=False/X", is: "Available=False/Y"},
		"wrong":        {reason: "once", is: "Invalid=True/LoadError Unpacked=False/LoadError", want: "Warning/LoadError"},
		"still wrong":  {reason: "no transition", was: "Invalid=True/LoadError", is: "Invalid=True/LoadError"},
		"no image":     {reason: "once, not at each retry", is: "Unpacked=False/ImagePullBackOff", want: "Warning/ImagePullBackOff"},
		"still no":     {reason: "a retry", was: "Unpacked=False/ImagePullBackOff", is: "Unpacked=False/ImagePullBackOff"},
		"unsatisfied":  {reason: "a dependency cannot be had", is: "DependenciesReady=False/DependenciesUnsatisfied", want: "Warning/DependenciesUnsatisfied"},
		"awaited":      {reason: "a dependency is on its way", is: "DependenciesReady=False/WaitingForDependencies"},
		"nothing":      {reason: "no transition", was: "Available=True/Available", is: "Available=True/Available"},
	} {
		was, is := statusWith(tc.was), statusWith(tc.is)
		o := outcome{step: stepSync, content: tc.content}
		if tc.unpacked {
			o.step, is.UnpackedHash = stepDeploy, "new"
		}
		var got []string
		for _, h := range transitionEvents(was, is, o) {
			got = append(got, h.kind+"/"+h.reason)
		}
		if joined := strings.Join(got, " "); joined != tc.want {
			t.Errorf("%s: got %q, want %q (%s)", name, joined, tc.want, tc.reason)
		}
	}
}

// TestBeginningDelay: few packages report soon that they are on their way; where many
// are, a status of each would hold up what matters.
func TestBeginningDelay(t *testing.T) {
	t.Parallel()
	for packages, want := range map[int]time.Duration{
		0: limits.PackageStatusInterval, 1: limits.PackageStatusInterval, 20: limits.PackageStatusInterval,
		100: 5 * time.Second, 1000: limits.PackageStatusMax,
	} {
		if got := beginningDelay(packages); got != want {
			t.Errorf("%d packages: %s, want %s", packages, got, want)
		}
	}
}

func TestInFlight(t *testing.T) {
	t.Parallel()
	results := map[string]error{"loads": nil, "fails": errors.New("no such image")}
	r, ended := newReconciler(t)
	r.load = func(_ context.Context, in input) (*content, error) { return nil, results[in.pkg.GetName()] }
	inFlight := func() int {
		r.memory.Lock()
		defer r.memory.Unlock()
		return r.memory.loading
	}
	for range 2 { // an attempt takes the place of the one before
		for name := range results {
			r.begin(t, named(name, image))
		}
		for range results {
			<-ended
		}
		if got := inFlight(); got != 1 {
			t.Errorf("%d packages are on their way, want the one that was loaded", got)
		}
	}
	if r.drop("loads"); inFlight() != 0 {
		t.Error("a package counts as on its way after its status was written")
	}
	if r.drop("fails"); inFlight() != 0 {
		t.Error("a package that was given up counts")
	}
}

// TestForget: a Package that was deleted leaves nothing behind, and what it loaded is
// cancelled; nor does one whose name has another UID by now.
func TestForget(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Client = secretServer(t)
	b.begin(t, named("a", image))
	b.begin(t, named("b", image))
	renewed := named("b", image)
	renewed.UID = "renewed"
	if s := b.of(renewed); s.attempt != nil || s.state.loads != 0 {
		t.Errorf("a Package of the same name knows %+v", s.state)
	}
	for _, name := range []string{"a", "b", "never known"} {
		if s, err := b.gather(t.Context(), types.NamespacedName{Namespace: "team", Name: name}); s != nil || err != nil {
			t.Errorf("%s is reconciled: %v", name, err)
		}
	}
	b.memory.Lock()
	defer b.memory.Unlock()
	if len(b.memory.states) != 0 || b.memory.loading != 0 {
		t.Errorf("%d states remain, %d loads", len(b.memory.states), b.memory.loading)
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
	b := newBench(t)
	load := b.load
	b.load = func(ctx context.Context, in input) (*content, error) {
		if strings.Contains(in.image, "long") && in.level == 0 {
			return nil, fmt.Errorf("load the package: %w", &queueing.DeferredError{Level: 1})
		}
		return load(ctx, in)
	}
	const long = "registry.test/long:v1"
	for i := range 2 * limits.LoadsPerHost {
		b.begin(t, named(fmt.Sprintf("long-%d", i), long))
	}
	b.begin(t, named("short", "registry.test/short:v1"))
	b.gate("registry.test/short:v1") <- nil
	if got := b.wait(t); got != "short" {
		t.Errorf("woke %s", got)
	}
	for range 2 * limits.LoadsPerHost {
		b.gate(long) <- nil
		uid := b.wait(t)
		if a := b.last(uid); !a.Done || a.Err != nil || a.Out.content == nil {
			t.Errorf("%s ended with %+v", uid, a)
		}
	}
	b.begin(t, named("dropped", long))
	b.drop("dropped")
	b.begin(t, named("last", "registry.test/short:v1"))
	b.gate("registry.test/short:v1") <- nil
	if got := b.wait(t); got != "last" {
		t.Errorf("woke %s", got)
	}
}
