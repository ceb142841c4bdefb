package packages

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/load"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/archive"
	"lockstep.run/lockstep/test/require"
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
	require.Equal(t, "shop", <-seen, "the load saw")
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
		step     step
		content  *load.Content
		want     string
	}{
		"installed":    {reason: "the conditions say it", is: "Available=False/ObjectSetUnready", unpacked: true, content: loaded},
		"with typo":    {reason: "ignored fields are named", unpacked: true, content: warned, want: "Warning/FieldsIgnored"},
		"at once":      {reason: "it never failed", is: "Available=True/Available", unpacked: true, content: loaded},
		"available":    {reason: "the end of a wait", was: "Available=False/X", is: "Available=True/Available", want: "Normal/Available"},
		"unavailable":  {reason: "a regression", was: "Available=True/Available", is: "Available=False/ProbeFailure", want: "Warning/Unavailable"},
		"not yet":      {reason: "an install is not a regression", is: "Available=False/ObjectSetUnready"},
		"other reason": {reason: "no transition", was: "Available=False/X", is: "Available=False/Y"},
		"wrong":        {reason: "once", is: "Invalid=True/LoadError Unpacked=False/LoadError", want: "Warning/LoadError"},
		"still wrong":  {reason: "no transition", was: "Invalid=True/LoadError", is: "Invalid=True/LoadError"},
		"no image":     {reason: "once, not at each retry", step: stepWait, is: "Unpacked=False/ImagePullBackOff", want: "Warning/ImagePullBackOff"},
		"still no":     {reason: "a retry", step: stepWait, was: "Unpacked=False/ImagePullBackOff", is: "Unpacked=False/ImagePullBackOff"},
		"not verified": {reason: "whatever the reason", step: stepWait, was: "Unpacked=False/ImagePullBackOff", is: "Unpacked=False/ImageNotVerified", want: "Warning/ImageNotVerified"},
		"no version":   {reason: "the condition Resolved says it", step: stepHold, was: "Unpacked=False/ImagePullBackOff", is: "Unpacked=False/NoMatchingVersion"},
		"unsatisfied":  {reason: "a dependency cannot be had", is: "DependenciesReady=False/DependenciesUnsatisfied", want: "Warning/DependenciesUnsatisfied"},
		"awaited":      {reason: "a dependency is on its way", is: "DependenciesReady=False/WaitingForDependencies"},
		"nothing":      {reason: "no transition", was: "Available=True/Available", is: "Available=True/Available"},
	} {
		was, is := statusWith(tc.was), statusWith(tc.is)
		o := outcome{step: tc.step, content: tc.content}
		if tc.unpacked {
			o.step, is.UnpackedHash = stepDeploy, "new"
		}
		var got []string
		for _, h := range transitionEvents(was, is, o) {
			got = append(got, h.Kind+"/"+h.Reason)
		}
		require.Equal(t, tc.want, strings.Join(got, " "), name)
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
		require.Equal(t, want, beginningDelay(packages), fmt.Sprintf("%d packages", packages))
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

// recordFor returns a record of a load that is due at start plus wait, unless wait is zero.
func recordFor(spec, holder string, interruptions int32, wait time.Duration) *corev1alpha1.LoadRecord {
	record := &corev1alpha1.LoadRecord{SpecHash: spec, Holder: holder, Interruptions: interruptions}
	if wait != 0 {
		until := metav1.NewTime(start.Add(wait))
		record.NotBefore = &until
	}
	return record
}

func TestAfterInterruption(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason     string
		last, want *corev1alpha1.LoadRecord
	}{
		"none":               {reason: "no load was started"},
		"own":                {reason: "this process lives", last: recordFor("s", "me", 3, 0)},
		"ended meanwhile":    {reason: "the first time", last: recordFor("s", "other", 0, 0), want: recordFor("s", "", 1, limits.InterruptedLoadMin)},
		"ended again":        {reason: "longer each time", last: recordFor("s", "other", 3, 0), want: recordFor("s", "", 4, 8*limits.InterruptedLoadMin)},
		"ended always":       {reason: "but not for ever", last: recordFor("s", "other", 1000, 0), want: recordFor("s", "", 1001, limits.InterruptedLoadMax)},
		"written by hand":    {reason: "no number makes it less than the least", last: recordFor("s", "other", -5, 0), want: recordFor("s", "", 1, limits.InterruptedLoadMin)},
		"waits":              {reason: "the time continues over other restarts", last: recordFor("s", "", 2, time.Second), want: recordFor("s", "", 2, time.Second)},
		"has waited":         {reason: "the time is over", last: recordFor("s", "", 2, -time.Second)},
		"failed in between":  {reason: "no manager ended", last: recordFor("s", "", 2, 0)},
		"of another spec":    {reason: "it is another package", last: recordFor("x", "other", 5, 0)},
		"another spec waits": {reason: "it is another package", last: recordFor("x", "", 5, time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := afterInterruption(tc.last, view{fingerprint: load.Fingerprint{Spec: "s"}, process: "me", now: start})
			require.Equal(t, tc.want, got, tc.reason)
		})
	}
}

func TestRecordOf(t *testing.T) {
	t.Parallel()
	current := load.Fingerprint{Spec: "s"}
	large := &load.Attempt{In: load.Input{Fingerprint: current}, Out: load.Out{Large: true}}
	ended := &load.Attempt{In: load.Input{Fingerprint: current}, Done: true, Out: load.Out{Large: true}}
	failed := &load.Attempt{In: load.Input{Fingerprint: current}, Done: true, Err: errors.New("x"), Retry: start, Out: load.Out{Large: true}}
	waits := &load.Attempt{In: load.Input{Fingerprint: current}, Done: true, Retry: start, Err: &interrupted{record: recordFor("s", "", 2, time.Minute)}}
	for name, tc := range map[string]struct {
		reason     string
		last, want *corev1alpha1.LoadRecord
		step       step
		attempt    *load.Attempt
		writeErr   error
	}{
		"small":               {reason: "costs no write", step: stepWait, attempt: &load.Attempt{In: load.Input{Fingerprint: current}}},
		"large":               {reason: "before it starts", step: stepWait, attempt: large, want: recordFor("s", "me", 0, 0)},
		"large again":         {reason: "the count stays", last: recordFor("s", "", 2, -time.Minute), step: stepWait, attempt: large, want: recordFor("s", "me", 2, 0)},
		"large, another spec": {reason: "it is another package", last: recordFor("x", "", 2, 0), step: stepWait, attempt: large, want: recordFor("s", "me", 0, 0)},
		"paused meanwhile":    {reason: "the load continues", last: recordFor("s", "me", 1, 0), step: stepPaused, attempt: large, want: recordFor("s", "me", 1, 0)},
		"not known to be large": {
			reason: "the pull before it does not take the count", last: recordFor("s", "", 2, -time.Minute), step: stepWait,
			attempt: &load.Attempt{In: load.Input{Fingerprint: current}}, want: recordFor("s", "", 2, -time.Minute),
		},
		"waits":                    {reason: "the interruption is counted", last: recordFor("s", "other", 1, 0), step: stepWait, attempt: waits, want: recordFor("s", "", 2, time.Minute)},
		"deployed":                 {reason: "it was loaded", last: recordFor("s", "me", 2, 0), step: stepDeploy, attempt: ended},
		"not deployed":             {reason: "slices are in memory", last: recordFor("s", "me", 2, 0), step: stepDeploy, attempt: ended, writeErr: errors.New("x"), want: recordFor("s", "me", 2, 0)},
		"awaits dependencies":      {reason: "it was loaded", last: recordFor("s", "me", 2, 0), step: stepDepend, attempt: ended},
		"refused":                  {reason: "it was loaded", last: recordFor("s", "me", 2, 0), step: stepRefuse, attempt: failed},
		"unpacked before":          {reason: "nothing is loaded", last: recordFor("s", "other", 2, 0), step: stepSync},
		"failed":                   {reason: "the manager lives", last: recordFor("s", "me", 0, 0), step: stepWait, attempt: failed},
		"failed after others":      {reason: "a failing registry does not reduce the count", last: recordFor("s", "me", 2, 0), step: stepWait, attempt: failed, want: recordFor("s", "", 2, 0)},
		"not known what to load":   {reason: "offers are read after a restart", last: recordFor("x", "other", 2, 0), step: stepHold, want: recordFor("x", "other", 2, 0)},
		"paused after the restart": {reason: "it is counted before the next load", last: recordFor("s", "other", 2, 0), step: stepPaused, want: recordFor("s", "other", 2, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pkg := newPackage()
			pkg.Status.Load = tc.last
			got := recordOf(view{pkg: pkg, fingerprint: current, process: "me", now: start, attempt: tc.attempt, outcome: outcome{step: tc.step, writeErr: tc.writeErr}})
			require.Equal(t, tc.want, got, tc.reason)
		})
	}
}

// A large load starts when the status has its record; a small one starts at once.
func TestLargeLoadAwaitsRecord(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.identity = "me"
	pkg := named("a", image)
	b.startLoad(t, pkg)
	b.gate(image) <- archive.ErrRoom
	b.wait(t)
	s := b.of(pkg)
	if a := s.attempt; !a.Out.Large || a.Out.Begin == nil || a.Done {
		t.Fatalf("without a record: %+v", a)
	}
	s.step, s.fingerprint, s.process = stepWait, s.attempt.In.Fingerprint, "me"
	if s.delay(pkg.PackageStatus(), pkg.PackageStatus()) > 0 {
		t.Error("the record is written later")
	}
	s.beginRecorded()
	if s.attempt.Out.Begin == nil {
		t.Fatal("it starts without a record")
	}
	pkg.Status.Load = recordOf(s.view)
	s.pkg = pkg
	s.beginRecorded()
	b.gate(image) <- archive.ErrRoom // and with more room at once
	b.gate(image) <- nil
	b.wait(t)
	if a := b.last("a"); !a.Done || a.Err != nil || !a.Out.Large {
		t.Errorf("with a record: %+v", a)
	}
}

// A process that finds the record of another one waits, and reports why.
func TestInterruptedLoadWaits(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	pkg := named("a", image)
	pkg.Status.Load = recordFor(image, "other", 2, 0)
	s := b.of(pkg)
	s.step, s.fingerprint, s.now = stepLoad, load.Fingerprint{Spec: image}, start
	if err := s.next(s.startLoad)(t.Context()); err != nil || s.step != stepWait {
		t.Fatalf("step %d, %v", s.step, err)
	}
	status := statusOf(s.view)
	require.Equal(t, "Ready=False/LoadBackOff@2 Reconciling=True/LoadBackOff@2 Unpacked=False/LoadBackOff@2", strings.Join(rendered(status.Conditions), " "), "conditions")
	require.Equal(t, recordFor(image, "", 3, 4*limits.InterruptedLoadMin), status.Load)
	for _, part := range []string{"ended 3 times", "2026-01-01T00:00:40Z", "raise"} {
		require.Contains(t, s.attempt.Err.Error(), part)
	}
	require.Equal(t, stepWait, byAttempt(s.view), "the next reconcile takes step")
	pkg.Status.Load = status.Load
	s = b.of(pkg)
	s.step, s.fingerprint, s.now = stepLoad, load.Fingerprint{Spec: image}, start.Add(4*limits.InterruptedLoadMin)
	if err := s.next(s.startLoad)(t.Context()); err != nil || s.step != stepLoad {
		t.Errorf("once it is due: step %d, %v", s.step, err)
	}
	b.gate(image) <- nil
	b.wait(t)
}

// looker returns a function that looks a tag up as a reconcile at the time now does. next is
// zero while the registry is requested.
func looker(t *testing.T, now *time.Time, resolve func(context.Context, load.Request) (string, error)) (
	look func(*corev1alpha1.Package) (digest string, next time.Time, err error), r *Reconciler, woken chan types.NamespacedName,
) {
	t.Helper()
	r, woken = newReconciler(t)
	r.loads.Resolve, r.Now = resolve, func() time.Time { return *now }
	r.loads.Spread = func(d time.Duration) time.Duration { return d * 3 / 4 }
	return func(pkg *corev1alpha1.Package) (string, time.Time, error) {
		known := r.of(pkg).lookUpTag()
		if known.Resolving {
			known.Due = time.Time{}
		}
		return known.Digest, known.Due, known.Err
	}, r, woken
}

// A tag is resolved once in each interval, and its digest is reported.
func TestTags(t *testing.T) {
	t.Parallel()
	now := start
	answers := make(chan error, 1)
	stands := digest
	lookUp, r, woken := looker(t, &now, func(_ context.Context, in load.Request) (string, error) {
		if in.Image != image {
			t.Errorf("asked for %s", in.Image)
		}
		return stands, <-answers
	})
	pkg := newPackage(every(10 * time.Minute))
	look := func() (string, time.Time, error) { return lookUp(pkg) }

	if got, next, err := look(); got != "" || err != nil || !next.Equal(start.Add(7*time.Minute+30*time.Second)) {
		t.Errorf("at first no registry is asked: %q, next %s, %v", got, next, err)
	}
	now = now.Add(8 * time.Minute)
	if got, next, err := look(); got != "" || err != nil || !next.IsZero() {
		t.Errorf("asking: %q, next %s, %v", got, next, err)
	}
	if _, next, _ := look(); !next.IsZero() {
		t.Errorf("it is asked once at a time, next %s", next)
	}
	answers <- nil
	<-woken
	if got, next, err := look(); got != digest || err != nil || !next.Equal(now.Add(7*time.Minute+30*time.Second)) {
		t.Errorf("answered: %q, next %s, %v", got, next, err)
	}
	now = now.Add(8 * time.Minute)
	_, _, _ = look()
	answers <- errors.New("the registry is away")
	<-woken
	if got, next, err := look(); got != digest || err == nil || next.IsZero() {
		t.Errorf("the last answer stays: %q, next %s, %v", got, next, err)
	}
	stands, now = "sha256:other", now.Add(8*time.Minute)
	_, _, _ = look()
	answers <- nil
	<-woken
	if got, _, err := look(); got != "sha256:other" || err != nil {
		t.Errorf("newDigest: %q, %v", got, err)
	}

	// The tag moved again and was unpacked by a change of the spec: an answer from
	// before must not take that back.
	pkg.Status.Resolved = &corev1alpha1.ResolvedPackage{Digest: "sha256:other"}
	if got, _, _ := look(); got != "sha256:other" {
		t.Errorf("unpacked as answered: %q", got)
	}
	pkg.Status.Resolved = &corev1alpha1.ResolvedPackage{Digest: "sha256:newest"}
	if got, _, _ := look(); got != "" {
		t.Errorf("the answer is older than the unpacked content: %q", got)
	}

	// A retry resolves the tag at once.
	retried("1")(pkg)
	if _, next, _ := look(); !next.IsZero() {
		t.Errorf("a retry resolves the tag at %s, want at once", next)
	}
	answers <- nil
	<-woken
	if _, next, _ := look(); next.IsZero() {
		t.Error("one retry resolves the tag twice")
	}

	pkg = newPackage(every(time.Second))
	if _, next, _ := look(); !next.Equal(now.Add(45 * time.Second)) {
		t.Errorf("less than the least interval: next %s", next)
	}
	now = now.Add(time.Minute)
	_, _, _ = look()
	dropped := r.of(pkg) // it has resolved nothing yet
	require.NoError(t, dropped.resolve(t.Context()))
	answers <- nil // nothing waits for it
	if got, _, _ := look(); got != "" {
		t.Errorf("a Package that was recreated knows %q", got)
	}
	select {
	case key := <-woken:
		t.Errorf("%s is woken after it went", key)
	default:
	}
}

// A panic over a registry's answer is an error of the one tag, which is resolved again when that is
// due.
func TestPanicOverATag(t *testing.T) {
	t.Parallel()
	now := start
	look, _, woken := looker(t, &now, func(context.Context, load.Request) (string, error) { panic("hunter2") })
	pkg := newPackage(every(10 * time.Minute))
	_, now, _ = look(pkg)
	for range limits.LoadsPerHost + 1 { // more often than the queue has capacity
		_, _, _ = look(pkg)
		<-woken
		_, next, err := look(pkg)
		var caught *panics.Error
		if !errors.As(err, &caught) || !strings.Contains(err.Error(), image) || strings.Contains(err.Error(), "hunter2") || !next.After(now) {
			t.Errorf("next %s, %v", next, err)
		}
		now = next
	}
}

func every(d time.Duration) func(*corev1alpha1.Package) {
	return func(p *corev1alpha1.Package) { p.Spec.Interval = &metav1.Duration{Duration: d} }
}
