package probes

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EvaluatePhase evaluates an ObjectSetPhase, as [Trim] returns it, by what the agent of its
// class reports: the condition Available for the present generation. A message of the agent
// becomes one line.
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
		case c.ObservedGeneration != phase.Metadata.Generation:
			return Result{Outdated: true, Messages: []string{fmt.Sprintf("the agent of class %q has not reported on its last change yet", class)}}
		case c.Status == metav1.ConditionTrue:
			return Result{Status: True}
		default:
			// Agents report so while the objects become ready, too: as with the probes of
			// these, only the deadline makes it a failure.
			return Result{Status: False, Messages: []string{oneLine(c.Message)}}
		}
	}
	return Result{Messages: []string{fmt.Sprintf("no status reported by the agent of class %q: is it running?", class)}}
}

// phasePrefix names the phase, as the messages of agents do.
var phasePrefix = regexp.MustCompile(`^Phase "[^"]*" failed: `)

func oneLine(message string) string {
	message = strings.Join(strings.Fields(phasePrefix.ReplaceAllString(message, "")), " ")
	if message == "" {
		return "is not available"
	}
	return message
}
