package progress_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
)

// A frame that is larger than the screen would scroll and be drawn twice.
func TestFrameFits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := anyState(t)
		o := progress.FrameOptions{
			Title: "Installing " + s.Target.String(),
			Width: rapid.IntRange(20, 120).Draw(t, "width"), Height: rapid.IntRange(6, 40).Draw(t, "height"),
			Elapsed: time.Duration(rapid.Int64Range(0, 1e13).Draw(t, "elapsed")),
			Tick:    rapid.IntRange(0, 1000).Draw(t, "tick"), Styles: terminal.Plain(),
			Done: rapid.Bool().Draw(t, "done"),
		}
		frame := progress.Frame(s, o)
		lines := strings.Split(frame, "\n")
		if len(lines) >= o.Height {
			t.Fatalf("%d lines on a screen of %d:\n%s", len(lines), o.Height, frame)
		}
		for _, line := range lines {
			if ansi.StringWidth(line) > o.Width {
				t.Fatalf("%d columns on a screen of %d: %q", ansi.StringWidth(line), o.Width, line)
			}
		}
	})
}

func anyState(t *rapid.T) progress.State {
	text := rapid.SampledFrom([]string{"", "short", "表示が広い文字", strings.Repeat("long words ", 30), strings.Repeat("x", 200), "two\nlines"})
	s := progress.State{
		Target: progress.Target{Scope: corev1alpha1.ScopeCluster, Name: "cert"},
		Image:  text.Draw(t, "image"), Package: text.Draw(t, "package"), Version: "1.2.3",
		Deleting: rapid.Bool().Draw(t, "deleting"), Unpacked: rapid.Bool().Draw(t, "unpacked"),
		Invalid: text.Draw(t, "invalid"), PullError: text.Draw(t, "pull error"), Stalled: text.Draw(t, "stalled"),
		Lost: text.Draw(t, "lost"), Revision: 3,
	}
	state := rapid.SampledFrom([]corev1alpha1.PhaseState{waiting, applying, probing, ready, tearingDown, removed, corev1alpha1.PhaseStateUnready})
	for i := range rapid.IntRange(0, 50).Draw(t, "phases") {
		ph := progress.Phase{Name: fmt.Sprintf("p%d-%s", i, text.Draw(t, "name")), State: state.Draw(t, "state"), Ready: 1, Total: 3}
		for range rapid.IntRange(0, 6).Draw(t, "objects") {
			ph.Objects = append(ph.Objects, progress.Object{
				Name: "ConfigMap " + text.Draw(t, "object"), Phase: ph.Name, Message: text.Draw(t, "message"),
				State: rapid.SampledFrom([]progress.ObjectState{progress.ObjectWaiting, progress.ObjectBlocked, progress.ObjectReady}).Draw(t, "object state"),
			})
		}
		s.Phases = append(s.Phases, ph)
	}
	return s
}

func TestFrameColour(t *testing.T) {
	t.Parallel()
	s := progress.Of(installSteps()[3].snap)
	o := progress.FrameOptions{Title: "Installing", Width: 80, Height: 24, Styles: terminal.Plain()}
	if strings.Contains(progress.Frame(s, o), "\x1b") {
		t.Error("a frame without colour has escape sequences")
	}
	o.Styles = terminal.Colored()
	if !strings.Contains(progress.Frame(s, o), "\x1b[") {
		t.Error("a frame with colour has none")
	}
}

// What a cluster says cannot draw on the terminal.
func TestUntrustedText(t *testing.T) {
	t.Parallel()
	const evil = "\x1b]0;owned\x07\x1b[2J\u202e\r"
	snap := snapshot(unpacked(), condition("Available", "False", evil, evil), condition("Stalled", "True", evil, evil),
		condition(evil, "True", evil, evil),
		revision(1, phase("deploy"+evil, probing, 0, 1)),
		blocking(corev1alpha1.BlockingObject{Group: evil, Kind: evil, Namespace: evil, Name: evil, Phase: "deploy" + evil, Message: evil}),
		deleting(evil))
	snap.Package.PackageSpec().Image, snap.Package.PackageSpec().Component, snap.Lost = evil, evil, evil
	r := snap.Package.PackageStatus().Resolved
	r.PackageName, r.Version, r.Digest = evil, evil, evil
	for _, isDeleting := range []bool{true, false} {
		if !isDeleting {
			snap.Package.SetDeletionTimestamp(nil)
		}
		s := progress.Of(snap)
		out := progress.Frame(s, progress.FrameOptions{Title: "t", Width: 200, Height: 50, Styles: terminal.Plain()}) +
			strings.Join(progress.Lines(progress.State{}, s), "\n") + progress.Culprit(s) +
			progress.Screen(progress.ReportOf(snap), progress.ScreenOptions{Now: begin, Styles: terminal.Plain()})
		for _, bad := range []string{"\x1b", "\x07", "\u202e", "\r"} {
			if strings.Contains(out, bad) {
				t.Errorf("%q came through:\n%q", bad, out)
			}
		}
	}
}
