package objects

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Job is the kind whose objects run once.
var Job = schema.GroupKind{Group: "batch", Kind: "Job"}

// Outcome is how a Job ended; empty while it has not.
type Outcome string

// The outcomes of a Job.
const (
	Succeeded Outcome = "Succeeded"
	Failed    Outcome = "Failed"
)

// Finished is the end of a Job, which may be absent a moment later.
type Finished struct {
	UID     types.UID
	Outcome Outcome
	// Revision is the number of the revision that wrote the Job last, by its
	// annotation; 0 where it is not known.
	Revision int64
	// Shows is the content of the template whose values the Job showed; zero where
	// it is not known.
	Shows Digest
}

// OutcomeOf reads the conditions of a Job. A Job whose success criteria are met is
// over in all but name: Complete follows when its pods have ended.
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
