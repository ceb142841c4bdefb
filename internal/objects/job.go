package objects

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Job is the kind whose objects run once.
var Job = schema.GroupKind{Group: "batch", Kind: "Job"}

// Outcome is how a Job ended; empty while it runs.
type Outcome string

// The outcomes of a Job.
const (
	Succeeded Outcome = "Succeeded"
	Failed    Outcome = "Failed"
)

// Finished records the end of a Job, which might be deleted a moment later.
type Finished struct {
	UID     types.UID
	Outcome Outcome
	// Revision is the number of the revision that wrote the Job last, by its annotation; 0 if
	// unknown.
	Revision int64
	// Shows is the content of the template whose values the Job had; zero if unknown.
	Shows Digest
}

// OutcomeOf reads the conditions of a Job. A Job that meets its success criteria has succeeded,
// although Complete follows only when its pods have ended.
func OutcomeOf(job map[string]any) Outcome {
	value, _, _ := unstructured.NestedFieldNoCopy(job, "status", "conditions")
	conditions, _ := value.([]any)
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		if condition["status"] != "True" {
			continue
		}
		switch condition["type"] {
		case "Complete", "SuccessCriteriaMet":
			return Succeeded
		case "Failed":
			return Failed
		}
	}

	return ""
}
