package packages

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/load"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/archive"
	"lockstep.run/lockstep/test/require"
)

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
	if got := rendered(status.Conditions); got != "Ready=False/LoadBackOff@2\nReconciling=True/LoadBackOff@2\nUnpacked=False/LoadBackOff@2" {
		t.Errorf("conditions:\n%s", got)
	}
	require.Equal(t, recordFor(image, "", 3, 4*limits.InterruptedLoadMin), status.Load)
	for _, part := range []string{"ended 3 times", "2026-01-01T00:00:40Z", "raise"} {
		if message := s.attempt.Err.Error(); !strings.Contains(message, part) {
			t.Errorf("%q lacks %q", message, part)
		}
	}
	if got := byAttempt(s.view); got != stepWait {
		t.Errorf("the next reconcile takes step %d", got)
	}
	pkg.Status.Load = status.Load
	s = b.of(pkg)
	s.step, s.fingerprint, s.now = stepLoad, load.Fingerprint{Spec: image}, start.Add(4*limits.InterruptedLoadMin)
	if err := s.next(s.startLoad)(t.Context()); err != nil || s.step != stepLoad {
		t.Errorf("once it is due: step %d, %v", s.step, err)
	}
	b.gate(image) <- nil
	b.wait(t)
}
