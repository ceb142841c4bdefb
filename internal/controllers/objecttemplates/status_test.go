package objecttemplates

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/test/require"
)

var desired = &objects.Desired{Key: objects.Key{Kind: "ConfigMap", Namespace: "team", Name: "out"}, Version: "v1"}

// record returns the record of an object of generation 5 with a status.
func record(status string) *objects.Observed {
	return &objects.Observed{Generation: 5, Trimmed: []byte(`{"status":` + status + `}`)}
}

func newTemplate(conds ...metav1.Condition) *corev1alpha1.ObjectTemplate {
	tmpl := &corev1alpha1.ObjectTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "t", Generation: 2}}
	tmpl.Status.Conditions = conds
	return tmpl
}

// lines shows conditions as type=status/reason, sorted.
func lines(conds []metav1.Condition) []string {
	var all []string
	for _, c := range conds {
		all = append(all, fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason))
	}
	slices.Sort(all)
	return all
}

func TestStatus(t *testing.T) {
	t.Parallel()
	was := func(typ, reason string) metav1.Condition {
		return metav1.Condition{Type: typ, Status: "True", Reason: reason, ObservedGeneration: 1, LastTransitionTime: metav1.Time{Time: time.Unix(1, 0)}}
	}
	const rendered = "Ready=True/Rendered"
	for _, tc := range []struct {
		reason string
		view   view
		want   []string
		// controls means that status.controllerOf names the object.
		controls bool
	}{
		{"applied",
			view{tmpl: newTemplate(was(corev1alpha1.ConditionObjectTemplateInvalid, "SourceError"), was("Stalled", "SourceError")), outcome: outcome{applied: true, desired: desired}},
			[]string{rendered}, true},
		{"a source is missing: the object stays, and so does its reported status",
			view{tmpl: newTemplate(was("Available", "Fine")), outcome: outcome{problem: &problem{
				reason: corev1alpha1.ReasonSourceError, message: "m", invalid: true, passes: true,
			}}},
			[]string{"Available=True/Fine", "Ready=False/SourceError", "Reconciling=True/SourceError", "package-operator.run/Invalid=True/SourceError"}, false},
		{"the template is wrong",
			view{tmpl: newTemplate(), outcome: outcome{problem: invalid(corev1alpha1.ReasonTemplateError, "m")}},
			[]string{"Ready=False/TemplateError", "Stalled=True/TemplateError", "package-operator.run/Invalid=True/TemplateError"}, false},
		{"another one has the object",
			view{tmpl: newTemplate(), outcome: outcome{desired: desired, blocking: []phases.Blocker{{Key: desired.Key, Kind: phases.BlockCollision}}}},
			[]string{"Ready=False/CollisionDetected", "Stalled=True/CollisionDetected"}, false},
		{"the write is refused",
			view{tmpl: newTemplate(), outcome: outcome{desired: desired, blocking: []phases.Blocker{{Key: desired.Key, Kind: phases.BlockRefused}}}},
			[]string{"Ready=False/ApplyError", "Reconciling=True/ApplyError"}, false},
		{"the former object is not on its way out yet",
			view{tmpl: newTemplate(), outcome: outcome{applied: true, desired: desired, leaving: []objects.Key{{Kind: "Secret"}}}},
			[]string{rendered}, false},
		{"conditions of the object, without removed ones",
			view{tmpl: newTemplate(was("Gone", "x")), outcome: outcome{applied: true, desired: desired, live: record(`{"observedGeneration":5,"conditions":[
				{"type":"Available","status":"True","reason":"Fine","observedGeneration":5},
				{"type":"Unnumbered","status":"False","reason":"Fine"},
				{"type":"Old","status":"True","reason":"Fine","observedGeneration":4},
				{"type":"Bare","status":"True"},
				{"type":"example.com/Mapped","status":"true","reason":"not ready"},
				{"type":"not a type","status":"True"}, {"type":7}, "text", null,
				{"type":"package-operator.run/Invalid","status":"True","reason":"Theirs"}]}`)}},
			[]string{"Available=True/Fine", "Bare=True/Unknown", rendered, "Unnumbered=False/Fine", "example.com/Mapped=True/not_ready"}, true},
		{"a status of an earlier generation is ignored",
			view{tmpl: newTemplate(was("Available", "Kept")), outcome: outcome{applied: true, desired: desired, live: record(`{"observedGeneration":4,"conditions":[
				{"type":"Available","status":"False","reason":"Old"}, {"type":"Ready","status":"True","reason":"Old"}]}`)}},
			[]string{"Available=True/Kept", "Ready=False/Progressing", "Reconciling=True/Progressing"}, true},
		{"as ready as the object",
			view{tmpl: newTemplate(), outcome: outcome{applied: true, desired: desired, live: record(`{"conditions":[
				{"type":"Ready","status":"False","reason":"Pulling","message":"m"}, {"type":"Stalled","status":"True","reason":"Pulling"}]}`)}},
			[]string{"Ready=False/Pulling", "Stalled=True/Pulling"}, true},
		{"conditions of another shape",
			view{tmpl: newTemplate(), outcome: outcome{applied: true, desired: desired, live: record(`{"conditions":{"a":"b"}}`)}},
			[]string{rendered}, true},
	} {
		status := statusOf(tc.view)
		require.Equal(t, tc.want, lines(status.Conditions), tc.reason)
		if (status.ControllerOf != nil) != tc.controls || status.ObservedGeneration != 2 {
			t.Errorf("%s: controllerOf %+v, generation %d", tc.reason, status.ControllerOf, status.ObservedGeneration)
		}
		for _, c := range status.Conditions {
			if c.ObservedGeneration != 2 && !meta.IsStatusConditionTrue(tc.view.tmpl.(*corev1alpha1.ObjectTemplate).Status.Conditions, c.Type) {
				t.Errorf("%s: %s describes generation %d", tc.reason, c.Type, c.ObservedGeneration)
			}
		}
		// An unchanged status is not written.
		tc.view.tmpl.(*corev1alpha1.ObjectTemplate).Status = *status
		require.Equal(t, status, statusOf(tc.view), fmt.Sprintf("%s: again", tc.reason))
	}
}

// TestStatusIsBounded gives an object as many conditions as possible, and the longest messages.
func TestStatusIsBounded(t *testing.T) {
	t.Parallel()
	var conds []map[string]any
	for i := range 500 {
		conds = append(conds, map[string]any{"type": fmt.Sprintf("C%d", i), "status": "True", "reason": strings.Repeat("r", 2000), "message": strings.Repeat("m", 40<<10)})
	}
	conds = append(conds, map[string]any{"type": "Ready", "status": "False", "reason": "R", "message": strings.Repeat("m", 40<<10)})
	text, err := json.Marshal(map[string]any{"conditions": conds})
	require.NoError(t, err)
	status := statusOf(view{tmpl: newTemplate(), outcome: outcome{applied: true, desired: desired, live: record(string(text))}})
	encoded, err := json.Marshal(status)
	if err != nil || len(encoded) > limits.StatusBytes {
		t.Errorf("the status has %d bytes: %v", len(encoded), err)
	}
}

func TestTransitionEvents(t *testing.T) {
	t.Parallel()
	ready := func(status metav1.ConditionStatus, reason string, more ...string) []metav1.Condition {
		conds := []metav1.Condition{{Type: corev1alpha1.ConditionReady, Status: status, Reason: reason}}
		for _, typ := range more {
			conds = append(conds, metav1.Condition{Type: typ, Status: "True"})
		}
		return conds
	}
	for _, tc := range []struct {
		reason        string
		before, after []metav1.Condition
		want          string
	}{
		{"rendered", nil, ready("True", "Rendered"), "Normal Rendered"},
		{"as before", ready("True", "Rendered"), ready("True", "Rendered"), ""},
		{"invalid", ready("True", "Rendered"), ready("False", "SourceError", corev1alpha1.ConditionObjectTemplateInvalid), "Warning SourceError"},
		{"stalled", nil, ready("False", "CollisionDetected", corev1alpha1.ConditionStalled), "Warning CollisionDetected"},
		{"in between", nil, ready("False", "Progressing"), ""},
	} {
		got := ""
		for _, e := range transitionEvents(tc.before, tc.after) {
			got += e.Kind + " " + e.Reason
		}
		require.Equal(t, tc.want, got, tc.reason)
	}
}
