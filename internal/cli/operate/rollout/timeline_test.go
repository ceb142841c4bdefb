package rollout_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/clitest"
	"lockstep.run/lockstep/test/clustertest"
	"lockstep.run/lockstep/test/golden"
)

func TestRolloutTimeline(t *testing.T) {
	t.Parallel()
	at := func(ms int64) *metav1.MicroTime {
		m := metav1.NewMicroTime(time.Unix(1_700_000_000, 0).Add(time.Duration(ms) * time.Millisecond))
		return &m
	}
	objects := clustertest.Revised(nil)
	for _, obj := range objects {
		if set, is := obj.(*corev1alpha1.ObjectSet); is && set.Name == "web-1" {
			set.Status.Timeline = []corev1alpha1.PhaseTimes{
				{Name: "crds", OpenedAt: at(0), AppliedAt: at(250), ReadyAt: at(1250), WaitedFor: "CustomResourceDefinition shops: not \x1b[31mestablished"},
				{Name: "app", OpenedAt: at(1250), AppliedAt: at(91_250)},
				{Name: "back", OpenedAt: at(-500), AppliedAt: at(-1500), ReadyAt: at(-2000)}, // by a clock that is behind
				{Name: "last"},
			}
		}
	}
	c := clustertest.FakeCluster(t, objects...)
	run := func(args ...string) clitest.Result {
		return clitest.InvokeOn(t, clustertest.DialTo(c), "", append([]string{"rollout", "history", "web", "--timeline"}, args...)...)
	}
	want := "Revision 1, which started at 2023-11-14T22:13:20Z:\n" +
		"PHASE  OPENED  APPLIED IN  READY AFTER  WAITED FOR\n" +
		"crds   +0s     250ms       1s           CustomResourceDefinition shops: not ?[31mestablished\n" +
		"app    +1.25s  1m30s\n" +
		"back   +0s     0s          0s\n" +
		"last\n"
	got := run("--revision", "1")
	if got.Code != 0 || strings.Contains(got.Out, "\x1b") || columns(got.Out) != columns(strings.ReplaceAll(want, "?[31m", escape(got.Out))) {
		t.Errorf("got %q %s, want %q", got.Out, got.Err, want)
	}
	got = run("--revision", "1", "-o", "json")
	golden.JSON(t, "rollout-timeline", got.Out)
	var timeline struct {
		Revision int64
		Phases   []struct {
			Name, WaitedFor                 string
			OpenedAt                        time.Time
			ApplyingSeconds, WaitingSeconds *float64
		}
	}
	if err := json.Unmarshal([]byte(got.Out), &timeline); err != nil || timeline.Revision != 1 || len(timeline.Phases) != 4 ||
		*timeline.Phases[1].ApplyingSeconds != 90 || timeline.Phases[1].WaitingSeconds != nil || timeline.Phases[0].OpenedAt.IsZero() {
		t.Errorf("%v: %s %s", err, got.Out, got.Err)
	}
	if got := run(); got.Code != 1 || !strings.Contains(got.Err, "revision 2 has no timeline: no phase of it was opened") {
		t.Errorf("got %+v", got)
	}
}

// columns returns a text without trailing spaces on its lines.
func columns(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// escape returns the replacement of a control sequence.
func escape(out string) string {
	_, rest, _ := strings.Cut(out, "not ")
	text, _, _ := strings.Cut(rest, "established")
	return text
}
