package phases

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
)

// Run records the content and the outcome of a Job that has finished.
type Run struct {
	Content objects.Digest
	Outcome objects.Outcome
	// UID is the UID of the Job, and Namespace the UID of its namespace; empty if unknown.
	UID, Namespace types.UID
}

// Succeeded reports whether d has run successfully.
func (r Run) Succeeded(d *objects.Desired) bool {
	return r.Outcome == objects.Succeeded && d != nil && r.Content == d.Content
}

// Jobs is the desired record of Jobs that have finished.
type Jobs struct {
	// Runs is the desired record. It leaves out Jobs that no revision contains any more.
	Runs map[objects.Key]Run
	// Due means that Runs has an outcome that is not recorded yet. The caller has to record it
	// durably before it performs a step, and then plan again.
	Due bool
	// Recorded are the Jobs whose end is recorded. Their observation can be dropped.
	Recorded map[objects.Key]objects.Finished
	// Overflow are the Jobs whose end did not fit into the record.
	Overflow []objects.Key
}

// admit adds a run to the record if there is room.
func (j *Jobs) admit(key objects.Key, run Run) bool {
	if _, known := j.Runs[key]; !known && len(j.Runs) >= limits.JobRecords {
		failures := slices.SortedFunc(maps.Keys(j.Runs), objects.Key.Compare)
		at := slices.IndexFunc(failures, func(k objects.Key) bool { return j.Runs[k].Outcome == objects.Failed })
		if at < 0 || run.Outcome == objects.Failed {
			return false
		}
		delete(j.Runs, failures[at])
	}

	j.Runs[key] = run
	return true
}
