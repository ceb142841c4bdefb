package packages

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/load"
	"lockstep.run/lockstep/internal/limits"
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
	b.loads.Load = b.loadOne
	return b
}

// named returns a Package of that name, of an image.
func named(name, image string, change ...func(*corev1alpha1.Package)) *corev1alpha1.Package {
	pkg := newPackage(change...)
	pkg.UID, pkg.Name, pkg.Spec.Image = types.UID(name), name, image
	return pkg
}

// startLoad starts to load a Package, in place of its loaded content.
func (r *Reconciler) startLoad(t *testing.T, pkg *corev1alpha1.Package) {
	t.Helper()
	s := r.of(pkg)
	s.step, s.fingerprint = stepLoad, load.Fingerprint{Spec: pkg.Spec.Image}
	if err := s.next(s.startLoad)(t.Context()); err != nil || s.step != stepLoad {
		t.Fatal(s.why, err)
	}
}

// last returns the attempt of a Package, or nil.
func (r *Reconciler) last(name string) *load.Attempt { return r.of(named(name, image)).attempt }

func (b *bench) gate(image string) chan error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.release[image] == nil {
		b.release[image] = make(chan error)
	}
	return b.release[image]
}

func (b *bench) loadOne(ctx context.Context, in load.Request) (*load.Content, error) {
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

func TestInputIsACopy(t *testing.T) {
	t.Parallel()
	seen, gate := make(chan string, 1), make(chan struct{})
	r, _ := newReconciler(t)
	r.loads.Load = func(_ context.Context, in load.Request) (*load.Content, error) {
		<-gate
		seen <- in.Pkg.GetName()
		return nil, nil
	}
	pkg := newPackage()
	r.startLoad(t, pkg)
	pkg.Name = "changed by a later pass"
	close(gate)
	if got := <-seen; got != "shop" {
		t.Errorf("the load saw %q", got)
	}
}

// TestDeployedContentIsForgotten: the summary for the status is kept until that is
// written, and the objects are not.
func TestDeployedContentIsForgotten(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.startLoad(t, named("a", image))
	b.gate(image) <- nil
	b.wait(t)
	s := b.of(named("a", image))
	if a := s.attempt; len(a.Out.Content.Template.Phases) == 0 || !a.Out.Deployed.IsZero() {
		t.Fatalf("before it is deployed: %+v", a)
	}
	b.Client, b.Reader = secretServer(t), secretServer(t)
	if s.step = stepDeploy; s.deploy(t.Context()) != nil || s.writeErr != nil {
		t.Fatal(s.writeErr)
	}
	want := newContent()
	want.Template, want.Labels, want.Sealing = corev1alpha1.ObjectSetTemplateSpec{}, nil, nil
	diff := cmp.Diff(want, b.last("a").Out.Content, cmp.AllowUnexported(load.Content{}))
	if a := b.last("a"); !a.Out.Deployed.Equal(start) || diff != "" {
		t.Errorf("deployed at %s: -want +got\n%s", a.Out.Deployed, diff)
	}
}

func TestTransitionEvents(t *testing.T) {
	t.Parallel()
	loaded, warned := newContent(), newContent()
	warned.Warnings = []string{"spec.foo is not known"}
	for name, tc := range map[string]struct {
		reason   string
		was, is  string // conditions as Type=Status/Reason
		unpacked bool
		content  *load.Content
		want     string
	}{
		"installed":    {reason: "one event for the image", is: "Available=False/ObjectSetUnready", unpacked: true, content: loaded, want: "Normal/Unpacked"},
		"with typo":    {reason: "ignored fields are named", unpacked: true, content: warned, want: "Warning/FieldsIgnored Normal/Unpacked"},
		"both":         {reason: "one event if one status has both", is: "Available=True/Available", unpacked: true, content: loaded, want: "Normal/Available"},
		"available":    {reason: "one for the rollout", was: "Available=False/X", is: "Available=True/Available", want: "Normal/Available"},
		"unavailable":  {reason: "a regression", was: "Available=True/Available", is: "Available=False/ProbeFailure", want: "Warning/Unavailable"},
		"not yet":      {reason: "an install is not a regression", is: "Available=False/ObjectSetUnready"},
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
			got = append(got, h.Kind+"/"+h.Reason)
		}
		if joined := strings.Join(got, " "); joined != tc.want {
			t.Errorf("%s: got %q, want %q (%s)", name, joined, tc.want, tc.reason)
		}
	}
}

// TestBeginningDelay: a few packages report soon that they are in progress. If there are many, the
// status of each would hold up more important writes.
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

// TestForget: a deleted Package leaves nothing behind, and its load is cancelled. The same holds
// for a Package whose name has another UID now.
func TestForget(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Client = secretServer(t)
	b.startLoad(t, named("a", image))
	b.startLoad(t, named("b", image))
	renewed := named("b", image)
	renewed.UID = "renewed"
	s := b.of(renewed)
	if loads, _ := b.loads.Taken(renewed); s.attempt != nil || loads != 0 {
		t.Errorf("a Package of the same name knows %+v", s.state)
	}
	for _, name := range []string{"a", "b", "never known"} {
		if s, err := b.gather(t.Context(), types.NamespacedName{Namespace: "team", Name: name}); s != nil || err != nil {
			t.Errorf("%s is reconciled: %v", name, err)
		}
	}
	b.memory.Lock()
	defer b.memory.Unlock()
	if len(b.memory.states) != 0 || b.loads.Loading() != 0 {
		t.Errorf("%d states remain, %d loads", len(b.memory.states), b.loads.Loading())
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
