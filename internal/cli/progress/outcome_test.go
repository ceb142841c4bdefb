package progress_test

import (
	"strings"
	"testing"
	"time"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/progress"
)

func TestJudgeInstall(t *testing.T) {
	t.Parallel()
	pull := snapshot(condition("Unpacked", "False", "ImagePullBackOff", "image not found"))
	stuck := snapshot(unpacked(), condition("Stalled", "True", "CollisionDetected", "taken"))
	noImage := snapshot(condition("Unpacked", "False", "ImagePullBackOff", "image not found"), condition("Stalled", "True", "ImagePullBackOff", "image not found"))
	readyNow := snapshot(unpacked(), condition("Ready", "True", "Idle", ""))
	old := snapshot(unpacked(), condition("Ready", "True", "Idle", ""), newGeneration())
	foreign := snapshot(unpacked(), condition("Available", "True", "Available", ""), condition("Progressing", "False", "Idle", ""))
	gone := snapshot()
	gone.Package = nil
	type look struct {
		at   time.Duration
		snap progress.Snapshot
	}
	tried := func(snap progress.Snapshot) progress.Snapshot {
		pkg := snap.Package.DeepCopyObject().(corev1alpha1.GenericPackage)
		pkg.PackageStatus().LastHandledRetry = "now"
		snap.Package = pkg
		return snap
	}
	invalid := snapshot(condition("Invalid", "True", "LoadError", "a\nb"))
	for name, tc := range map[string]struct {
		retry  string
		looks  []look
		done   bool
		reason string
	}{
		"nothing yet":                 {looks: []look{{0, snapshot()}}},
		"ready":                       {looks: []look{{0, readyNow}}, done: true},
		"ready, but for the old spec": {looks: []look{{0, old}}},
		"ready by another engine":     {looks: []look{{0, foreign}}, done: true},
		"pull fails once":             {looks: []look{{0, pull}, {14 * time.Second, pull}}},
		"pull fails for good":         {looks: []look{{0, pull}, {15 * time.Second, pull}}, done: true, reason: "the image cannot be pulled:\n  image not found\n  Once that is fixed, it is retried automatically; to retry at once: kubectl package retry clusterpackage/cert"},
		"no such image":               {looks: []look{{0, noImage}, {5 * time.Second, noImage}}, done: true, reason: "the image cannot be pulled:\n  image not found\n  Once that is fixed, it is retried automatically; to retry at once: kubectl package retry clusterpackage/cert"},
		"pull fails, works, fails":    {looks: []look{{0, pull}, {10 * time.Second, snapshot(unpacked())}, {20 * time.Second, pull}}},
		"stuck for a moment":          {looks: []look{{0, stuck}, {time.Second, readyNow}}, done: true},
		"stuck":                       {looks: []look{{0, stuck}, {6 * time.Second, stuck}}, done: true, reason: "the rollout is stuck:\n  taken"},
		"invalid":                     {looks: []look{{0, snapshot(condition("Invalid", "True", "LoadError", "a\nb"))}}, done: true, reason: "the package cannot be installed as it is:\n  a\n  b\n  Correct it in the package and push it again, then: kubectl package retry clusterpackage/cert"},
		"invalid before the retry":    {retry: "now", looks: []look{{0, invalid}, {time.Minute, invalid}, {time.Minute, tried(readyNow)}}, done: true},
		"ready before the retry":      {retry: "now", looks: []look{{0, readyNow}}},
		"no image before the retry":   {retry: "now", looks: []look{{0, noImage}, {time.Minute, noImage}}},
		"invalid after the retry":     {retry: "now", looks: []look{{0, invalid}, {1, tried(invalid)}}, done: true, reason: "the package cannot be installed as it is:\n  a\n  b\n  Correct it in the package and push it again, then: kubectl package retry clusterpackage/cert"},
		"paused before the retry":     {retry: "now", looks: []look{{0, snapshot(condition("Paused", "True", "Paused", "by hand"))}}, done: true, reason: "it is paused, so the engine does not write it (by hand). To resume it: kubectl package unpause clusterpackage/cert"},
		"paused":                      {looks: []look{{0, snapshot(condition("Paused", "True", "Paused", "by hand"))}}, done: true, reason: "it is paused, so the engine does not write it (by hand). To resume it: kubectl package unpause clusterpackage/cert"},
		"deleted":                     {looks: []look{{0, gone}}, done: true, reason: "it was deleted during its rollout"},
		"being deleted":               {looks: []look{{0, snapshot(deleting())}}, done: true, reason: "it is being deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			judge := &progress.Install{Retry: tc.retry}
			var v progress.Outcome
			for _, l := range tc.looks {
				if v.Done {
					t.Fatalf("done too early: %+v", v)
				}
				v = judge.Assess(progress.Of(l.snap), begin.Add(l.at))
			}
			if v.Done != tc.done || v.Reason != tc.reason || v.Failed != (tc.reason != "") {
				t.Errorf("got %+v, want done %t, reason %q", v, tc.done, tc.reason)
			}
		})
	}
}

func TestLinesOfALargePhase(t *testing.T) {
	t.Parallel()
	var lines []string
	last := progress.State{}
	for i := range int32(1001) {
		s := progress.Of(snapshot(unpacked(), revision(1, phase("all", applying, i, 1000))))
		lines = append(lines, progress.Lines(last, s)...)
		last = progress.Remember(last, s)
	}
	if len(lines) > 15 {
		t.Errorf("%d lines for a phase of 1000 objects:\n%s", len(lines), strings.Join(lines, "\n"))
	}
}

// An upgrade starts with the phases of the previous revision, which are not news.
func TestLinesOfAnUpgrade(t *testing.T) {
	t.Parallel()
	old := snapshot(unpacked(), revision(1, phase("all", ready, 1, 1)))
	changed := snapshot(unpacked(), revision(1, phase("all", ready, 1, 1)), newGeneration())
	unpackedAgain := snapshot(newGeneration(), unpacked(), revision(1, phase("all", ready, 1, 1)))
	next := snapshot(newGeneration(), unpacked(), revision(2, phase("all", applying, 0, 1)))
	var lines []string
	last := progress.Of(old)
	for _, snap := range []progress.Snapshot{changed, unpackedAgain, next} {
		s := progress.Of(snap)
		lines = append(lines, progress.Lines(last, s)...)
		last = progress.Remember(last, s)
	}
	got := strings.Join(lines, "\n")
	if want := "revision 2: 1 phase, 1 object\nphase all: applying, 0/1"; !strings.HasSuffix(got, want) || strings.Count(got, "\n") != 2 {
		t.Errorf("got\n%s\nwant one line about the image and\n%s", got, want)
	}
}

func TestElapsed(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0.0s", 0: "0.0s", 440 * time.Millisecond: "0.4s", 59940 * time.Millisecond: "59.9s",
		59960 * time.Millisecond: "1m00s", 65 * time.Second: "1m05s",
		time.Hour - 100*time.Millisecond: "1h00m", 2*time.Hour + 3*time.Minute + 10*time.Second: "2h03m",
	} {
		if got := progress.Elapsed(d); got != want {
			t.Errorf("Elapsed(%s) = %q, want %q", d, got, want)
		}
	}
}

// The reason why an image is not trusted is reported once, without a word about a pull that was
// never tried.
func TestNotVerified(t *testing.T) {
	t.Parallel()
	const why = "the image example.com/web:v1 is not verified: the registry has no signature of it"
	s := progress.Of(snapshot(condition("Unpacked", "False", "ImageNotVerified", why), condition("Stalled", "True", "ImageNotVerified", why)))
	if s.Summary() != progress.SummaryNotVerified || s.Summary().Words() != "image not verified" || !strings.HasPrefix(progress.Culprit(s), why+". Once that is fixed") {
		t.Errorf("%s: %s", s.Summary().Words(), progress.Culprit(s))
	}
	if got := progress.Lines(progress.State{}, s); strings.Contains(strings.Join(got, "\n"), "cannot pull") {
		t.Errorf("got %q", got)
	}
}
