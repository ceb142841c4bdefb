package probes

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EvaluatePhase evaluates an ObjectSetPhase, as [Trim] returns it, by the condition Available that
// the agent of its class reports for the present generation. It folds a message of the agent into
// one line.
func EvaluatePhase(trimmed []byte, class string) Result {
	var phase struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Status   struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}

	if err := json.Unmarshal(trimmed, &phase); err != nil {
		return Result{Messages: []string{"malformed status"}}
	}

	for _, c := range phase.Status.Conditions {
		switch {
		case c.Type != "Available":
		// An ObjectSetPhase is written with each revision, so an older report describes other
		// objects.
		case c.ObservedGeneration != phase.Metadata.Generation:
			return Result{Outdated: true, Messages: []string{fmt.Sprintf("the agent of class %q has not reported on its last change yet", class)}}
		case c.Status == metav1.ConditionTrue:
			return Result{Status: True}
		default:
			// Agents also report this while the objects are becoming ready. As with the probes of
			// such objects, it becomes a failure only at the deadline.
			// The prefix repeats the phase, and messages of several objects are joined with commas.
			message := strings.Join(strings.Fields(phasePrefix.ReplaceAllString(c.Message, "")), " ")
			return Result{Status: False, Messages: []string{cmp.Or(message, "is not available")}}
		}
	}

	return Result{Messages: []string{fmt.Sprintf("no status reported by the agent of class %q: is it running?", class)}}
}

// phasePrefix matches the name of the phase, with which agents start their messages.
var phasePrefix = regexp.MustCompile(`^Phase "[^"]*" failed: `)
