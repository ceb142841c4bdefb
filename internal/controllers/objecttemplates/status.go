package objecttemplates

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
)

const (
	objectTemplateMessage    = 512 // bytes of the message of a condition that its object reports, so that the status stays small
	objectTemplateReason     = 128 // bytes of its reason
	objectTemplateConditions = 20  // of its object that it reports
)

// own are the types of conditions that describe the template itself. All others are of its object.
var own = map[string]bool{
	corev1alpha1.ConditionObjectTemplateInvalid: true, corev1alpha1.ConditionReady: true, corev1alpha1.ConditionReconciling: true,
	corev1alpha1.ConditionStalled: true, corev1alpha1.ConditionTruncated: true,
}

// statusOf returns the status that follows from a view.
func statusOf(v view) *corev1alpha1.ObjectTemplateStatus {
	status, generation := v.tmpl.ObjectTemplateStatus().DeepCopy(), v.tmpl.GetGeneration()
	conds := &status.Conditions
	switch p := v.problem; {
	case p != nil && p.invalid:
		conditions.Set(conds, generation, corev1alpha1.ConditionObjectTemplateInvalid, true, p.reason, p.message)
	case p == nil, p.reason == corev1alpha1.ReasonServiceAccountRequired:
		conditions.Remove(conds, corev1alpha1.ConditionObjectTemplateInvalid)
	}

	var object reported
	if v.applied {
		object = reportedBy(v.live)
		if object.current {
			copyConditions(conds, generation, object.conditions)
		}
		if len(v.leaving) == 0 {
			status.ControllerOf = reference(v.desired)
		}
	}

	conditions.Kstatus(conds, generation, stateOf(v, object))
	status.ObservedGeneration = generation
	return status
}

func reference(d *objects.Desired) *corev1alpha1.ControlledObjectReference {
	return &corev1alpha1.ControlledObjectReference{
		Kind: d.Key.Kind, Group: d.Key.Group, Name: d.Key.Name, Namespace: d.Key.Namespace, Version: d.Version,
	}
}

// stateOf returns the state of the template. If its object reports Ready, the template follows it.
func stateOf(v view, object reported) conditions.State {
	switch {
	case v.problem != nil:
		return conditions.State{Stalled: !v.problem.passes, Reason: v.problem.reason, Message: v.problem.message}
	case len(v.blocking) > 0:
		return blocked(v.blocking)
	case !v.applied:
		return conditions.State{Reason: corev1alpha1.ReasonProgressing, Message: v.desired.Key.String() + " is being written."}
	case object.ready == nil && object.hasReady:
		return conditions.State{Reason: corev1alpha1.ReasonProgressing, Message: v.desired.Key.String() + " has not reported on its new state yet."}
	case object.ready != nil && object.ready.Status != metav1.ConditionTrue:
		return conditions.State{Stalled: object.stalled, Reason: object.ready.Reason, Message: v.desired.Key.String() + ": " + object.ready.Message}
	}
	return conditions.State{Ready: true, Reason: corev1alpha1.ReasonRendered, Message: v.desired.Key.String() + " is as the template renders it."}
}

// blocked returns the state of a template whose object cannot be written, or whose former object
// cannot be removed.
func blocked(blocking []phases.Blocker) conditions.State {
	state := conditions.State{Reason: corev1alpha1.ReasonApplyError}
	var lines []string
	for i := range blocking {
		b := &blocking[i]
		lines = append(lines, b.Key.String()+" "+b.Message)
		switch b.Kind {
		case phases.BlockCollision:
			state.Reason, state.Stalled = corev1alpha1.ReasonCollisionDetected, true
		case phases.BlockWait, phases.BlockUnseen:
			state.Reason = corev1alpha1.ReasonProgressing
		}
		if b.Reason != "" {
			state.Reason = b.Reason
		}
	}

	state.Message = strings.Join(lines, "\n")
	return state
}

// teardownMessage describes the objects that a deletion waits for.
func teardownMessage(keys []objects.Key, blocking []phases.Blocker) string {
	if len(blocking) > 0 {
		return blocked(blocking).Message
	}
	return fmt.Sprintf("%s is being removed.", keys[0])
}

// reported is the state that an object reports about itself.
type reported struct {
	// current means that the conditions describe the present state of the object, which can have
	// none.
	current    bool
	conditions []metav1.Condition
	// hasReady means that the object reports Ready; ready is nil if the condition is not about its
	// present state.
	hasReady bool
	ready    *metav1.Condition
	stalled  bool
}

// reportedBy reads the status of an object from its record. It skips conditions of an earlier
// generation, and invalid ones.
func reportedBy(live *objects.Observed) reported {
	var object struct {
		Status struct {
			ObservedGeneration *float64 `json:"observedGeneration"`
			Conditions         []any    `json:"conditions"`
		} `json:"status"`
	}

	r := reported{current: true}
	if live == nil || live.Trimmed == nil || json.Unmarshal(live.Trimmed, &object) != nil {
		return r // of another shape
	}
	if observed := object.Status.ObservedGeneration; observed != nil && int64(*observed) != live.Generation {
		r.current = false
	}

	for _, element := range object.Status.Conditions {
		fields, _ := element.(map[string]any)
		text := func(field string) string {
			value, _ := fields[field].(string)
			return value
		}
		typ := text("type")
		r.hasReady = r.hasReady || typ == corev1alpha1.ConditionReady
		generation, numbered := fields["observedGeneration"].(float64)
		if !r.current || !conditions.ValidType(typ) || numbered && int64(generation) != live.Generation {
			continue
		}
		c := conditions.Foreign(typ, text("status"), text("reason"), text("message"))
		switch {
		case typ == corev1alpha1.ConditionReady:
			r.ready = &c
		case typ == corev1alpha1.ConditionStalled:
			r.stalled = c.Status == metav1.ConditionTrue
		case !own[typ] && len(r.conditions) < objectTemplateConditions:
			c.Message = conditions.Cut(c.Message, objectTemplateMessage)
			c.Reason = conditions.Reason(c.Reason[:min(len(c.Reason), objectTemplateReason)])
			r.conditions = append(r.conditions, c)
		}
	}

	return r
}

// copyConditions copies the conditions of the object to the template, and removes the ones that the
// object no longer reports.
func copyConditions(conds *[]metav1.Condition, generation int64, of []metav1.Condition) {
	reports := map[string]bool{}
	for _, c := range of {
		reports[c.Type] = true
		conditions.Copy(conds, generation, c)
	}

	*conds = slices.DeleteFunc(*conds, func(c metav1.Condition) bool { return !own[c.Type] && !reports[c.Type] })
}
