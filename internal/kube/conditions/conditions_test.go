package conditions_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

func TestSet(t *testing.T) {
	t.Parallel()
	long := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	condition := func(status metav1.ConditionStatus, generation int64, reason, message string) metav1.Condition {
		return metav1.Condition{Type: "Available", Status: status, ObservedGeneration: generation, Reason: reason, Message: message, LastTransitionTime: long}
	}
	old := condition(metav1.ConditionTrue, 1, "Available", "ok")
	source := old
	source.ObservedGeneration, source.LastTransitionTime = 7, metav1.Now()

	type list = *[]metav1.Condition
	for name, tc := range map[string]struct {
		reason               string
		set                  func(list) bool
		want                 metav1.Condition
		changed, transitions bool
	}{
		"same": {"no write without a change",
			func(c list) bool { return conditions.Set(c, 1, "Available", true, "Available", "ok") }, old, false, false},
		"message": {"a new message is not a transition",
			func(c list) bool { return conditions.Set(c, 2, "Available", true, "Available", "fine") },
			condition(metav1.ConditionTrue, 2, "Available", "fine"), true, false},
		"status": {"a new status is a transition",
			func(c list) bool { return conditions.Set(c, 1, "Available", false, "ProbeFailure", "") },
			condition(metav1.ConditionFalse, 1, "ProbeFailure", ""), true, true},
		"unknown, no reason": {"the schema refuses an empty reason",
			func(c list) bool { return conditions.SetUnknown(c, 1, "Available", "", "?") },
			condition(metav1.ConditionUnknown, 1, "Unknown", "?"), true, true},
		"copy": {"a copied condition describes its new object",
			func(c list) bool { return conditions.Copy(c, 1, source) }, old, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conds := []metav1.Condition{{Type: "Other"}, old}
			require.Equal(t, tc.changed, tc.set(&conds), fmt.Sprintf("%s: changed", tc.reason))
			got := *meta.FindStatusCondition(conds, "Available")
			require.Equal(t, tc.transitions, !got.LastTransitionTime.Equal(&long), fmt.Sprintf("%s: transition", tc.reason))
			got.LastTransitionTime = tc.want.LastTransitionTime
			require.Equal(t, tc.want, got, tc.reason)
			require.Equal(t, 2, len(conds), "conditions")
		})
	}
}

func TestIsTrueFor(t *testing.T) {
	t.Parallel()
	conds := []metav1.Condition{
		{Type: "Yes", Status: metav1.ConditionTrue, ObservedGeneration: 2},
		{Type: "No", Status: metav1.ConditionFalse, ObservedGeneration: 2},
	}
	for _, tc := range []struct {
		typ        string
		generation int64
		any, exact bool
	}{
		{"Yes", 2, true, true}, {"Yes", 3, true, false}, {"No", 2, false, false}, {"Absent", 2, false, false},
	} {
		require.Equal(t, tc.any, meta.IsStatusConditionTrue(conds, tc.typ), fmt.Sprintf("IsTrue(%s)", tc.typ))
		require.Equal(t, tc.exact, conditions.IsTrueFor(conds, tc.typ, tc.generation), fmt.Sprintf("IsTrueFor(%s, %d)", tc.typ, tc.generation))
	}
}

func TestMessage(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain\n\ttext, ümlaut": "plain\n\ttext, ümlaut",
		"\x1b[2Jclear":          `\u001b[2Jclear`,
		"a\x00b\x7f\u0085":      `a\u0000b\u007f\u0085`,
		"turn\u202earound":      `turn\u202earound`,
		"broken \xff":           `broken \xff`,
		"replaced �":            "replaced �",
	} {
		require.Equal(t, want, conditions.Message(in), fmt.Sprintf("%q became", in))
	}
	for _, unit := range []string{"a", "ü", "€", "𝄞", "\x1b"} {
		for pad := range 4 {
			got := conditions.Message(strings.Repeat("x", pad) + strings.Repeat(unit, limits.MessageBytes+1))
			if len(got) > limits.MessageBytes || !utf8.ValidString(got) || !strings.HasSuffix(got, "(cut)") {
				t.Errorf("%d bytes of %q, valid %t", len(got), unit, utf8.ValidString(got))
			}
		}
	}
}

// The conditions are checked with the library that their readers use.
func TestKstatus(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		state conditions.State
		want  status.Status
		types string
	}{
		"ready":             {conditions.State{Ready: true, Reason: "Available"}, status.CurrentStatus, "Ready=True"},
		"working":           {conditions.State{Reason: "Progressing"}, status.InProgressStatus, "Ready=False Reconciling=True"},
		"stuck":             {conditions.State{Stalled: true, Reason: "Invalid"}, status.FailedStatus, "Ready=False Stalled=True"},
		"stuck, old serves": {conditions.State{Ready: true, Stalled: true, Reason: "Invalid"}, status.FailedStatus, "Ready=False Stalled=True"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conds := []metav1.Condition{
				{Type: corev1alpha1.ConditionReconciling, Status: metav1.ConditionTrue},
				{Type: corev1alpha1.ConditionStalled, Status: metav1.ConditionTrue},
			}
			if !conditions.Kstatus(&conds, 3, tc.state) {
				t.Error("the first time is not a change")
			}
			if conditions.Kstatus(&conds, 3, tc.state) {
				t.Error("the second time changes something")
			}
			pkg := &corev1alpha1.Package{Status: corev1alpha1.PackageStatus{Conditions: conds, ObservedGeneration: 3}}
			pkg.Generation = 3
			require.Equal(t, tc.want, compute(t, pkg), "kstatus reads")
			for _, c := range conds {
				require.Contains(t, tc.types, c.Type+"="+string(c.Status), "a condition that is there")
			}
		})
	}
}

func compute(t *testing.T, obj runtime.Object) status.Status {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	require.NoError(t, err)
	result, err := status.Compute(&unstructured.Unstructured{Object: content})
	require.NoError(t, err)
	return result.Status
}

// TestReason: every reason becomes a valid one, and a valid one is not changed.
func TestReason(t *testing.T) {
	t.Parallel()
	valid := regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`) // as metav1.Condition has it
	for given, want := range map[string]string{
		"": "Unknown", "MinimumReplicasAvailable": "MinimumReplicasAvailable", "a:b,c": "a:b,c",
		"not ready": "not_ready", "crash-loop": "crash_loop", "404": "Reason_404", "ends,": "ends", "---": "Reason_", "größe": "gr__e",
		strings.Repeat("a", 2000): strings.Repeat("a", 1024),
	} {
		require.Equal(t, want, conditions.Reason(given), fmt.Sprintf("%q becomes", given))
	}
	rapid.Check(t, func(t *rapid.T) {
		given := rapid.OneOf(rapid.String(), rapid.StringMatching(`[-a-z0-9 ,:_]{0,999}`)).Draw(t, "reason")
		got := conditions.Reason(given)
		if !valid.MatchString(got) || len(got) > 1024 {
			t.Errorf("%q becomes %q", given, got)
		}
		if valid.MatchString(given) && len(given) <= 1024 && got != given {
			t.Errorf("%q was fine and becomes %q", given, got)
		}
		require.Equal(t, got, conditions.Reason(got), fmt.Sprintf("%q becomes", given))
	})
}

// TestForeign: an invalid status becomes Unknown, and the message quotes it.
func TestForeign(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]struct {
		status metav1.ConditionStatus
		says   string
	}{
		"True": {"True", "well"}, "true": {"True", "well"}, "FALSE": {"False", "well"}, "Unknown": {"Unknown", "well"},
		"yes": {"Unknown", `The object has the status "yes", which is neither True nor False. well`},
		"":    {"Unknown", `The object has the status "", which is neither True nor False. well`},
	} {
		got := conditions.Foreign("example.com/Ready", given, "Fine", "well")
		if got.Status != want.status || got.Message != want.says || got.Reason != "Fine" {
			t.Errorf("%q becomes %+v", given, got)
		}
	}
	for typ, want := range map[string]bool{
		"example.com/Ready": true, "Ready": true, "example.com/": false, "a b/c": false, "": false, "example.com/" + strings.Repeat("x", 310): false,
	} {
		require.Equal(t, want, conditions.ValidType(typ), fmt.Sprintf("%q fits", typ))
	}
}
