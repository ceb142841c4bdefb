package conditions_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

func TestSet(t *testing.T) {
	t.Parallel()
	long := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	old := metav1.Condition{
		Type: "Available", Status: metav1.ConditionTrue, ObservedGeneration: 1,
		Reason: "Available", Message: "ok", LastTransitionTime: long,
	}
	for name, tc := range map[string]struct {
		reason      string
		set         func(*[]metav1.Condition) bool
		want        metav1.Condition
		changed     bool
		transitions bool
	}{
		"same": {
			reason: "no write without a change",
			set: func(c *[]metav1.Condition) bool {
				return conditions.Set(c, 1, "Available", true, "Available", "ok")
			},
			want: old,
		},
		"message": {
			reason: "a new message is not a transition",
			set: func(c *[]metav1.Condition) bool {
				return conditions.Set(c, 2, "Available", true, "Available", "fine")
			},
			want: metav1.Condition{
				Type: "Available", Status: metav1.ConditionTrue, ObservedGeneration: 2,
				Reason: "Available", Message: "fine", LastTransitionTime: long,
			},
			changed: true,
		},
		"status": {
			reason: "a new status is a transition",
			set: func(c *[]metav1.Condition) bool {
				return conditions.Set(c, 1, "Available", false, "ProbeFailure", "")
			},
			want:        metav1.Condition{Type: "Available", Status: metav1.ConditionFalse, ObservedGeneration: 1, Reason: "ProbeFailure"},
			changed:     true,
			transitions: true,
		},
		"unknown, no reason": {
			reason: "the schema refuses an empty reason",
			set: func(c *[]metav1.Condition) bool {
				return conditions.SetUnknown(c, 1, "Available", "", "?")
			},
			want:        metav1.Condition{Type: "Available", Status: metav1.ConditionUnknown, ObservedGeneration: 1, Reason: "Unknown", Message: "?"},
			changed:     true,
			transitions: true,
		},
		"copy": {
			reason: "a copied condition describes its new object",
			set: func(c *[]metav1.Condition) bool {
				source := old
				source.ObservedGeneration, source.LastTransitionTime = 7, metav1.Now()
				return conditions.Copy(c, 1, source)
			},
			want: old,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conds := []metav1.Condition{{Type: "Other"}, old}
			if got := tc.set(&conds); got != tc.changed {
				t.Errorf("%s: changed is %t", tc.reason, got)
			}
			got := *meta.FindStatusCondition(conds, "Available")
			if moved := !got.LastTransitionTime.Equal(&long); moved != tc.transitions {
				t.Errorf("%s: transition is %t", tc.reason, moved)
			}
			got.LastTransitionTime = tc.want.LastTransitionTime
			if got != tc.want {
				t.Errorf("%s: got %+v, want %+v", tc.reason, got, tc.want)
			}
			if len(conds) != 2 {
				t.Errorf("%d conditions", len(conds))
			}
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
		if got := meta.IsStatusConditionTrue(conds, tc.typ); got != tc.any {
			t.Errorf("IsTrue(%s) = %t", tc.typ, got)
		}
		if got := conditions.IsTrueFor(conds, tc.typ, tc.generation); got != tc.exact {
			t.Errorf("IsTrueFor(%s, %d) = %t", tc.typ, tc.generation, got)
		}
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
		if got := conditions.Message(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
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
			if got := compute(t, pkg); got != tc.want {
				t.Errorf("kstatus reads %s, want %s", got, tc.want)
			}
			for _, c := range conds {
				if !strings.Contains(tc.types, c.Type+"="+string(c.Status)) {
					t.Errorf("%s=%s is there, want %s", c.Type, c.Status, tc.types)
				}
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
