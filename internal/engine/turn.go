package engine

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
)

// Want is the wanted state of an owner's objects, in addition to its revisions.
type Want struct {
	// Store is nil for an owner of one object, which needs no record: the revisions of Single and
	// Removal are claimed, open and succeeded from the start. References can be nil.
	Store      Store
	References References
	// Current is the revision to claim and to complete; empty if there is none.
	Current types.UID
	// RecordsJobs means that the store records Jobs that have finished; Jobs is its record.
	RecordsJobs bool
	Jobs        map[objects.Key]phases.Run
	// Teardown removes all objects, or with Orphan releases them.
	Teardown, Orphan bool
	// Paused keeps the objects for the next revision, and ReportDrift leaves changes by others.
	Paused, ReportDrift bool
	// Retain selects objects that only older revisions have: they are kept, without control, until
	// those revisions are removed. Nil selects none.
	Retain func(objects.Key) bool
}

// Outcome is the result of a step.
type Outcome struct {
	// Again means that the step changed something: the next step can be due at once.
	Again bool
	// Idle means that no step is due at present.
	Idle bool
	// TornDown means that all objects to remove no longer exist.
	TornDown bool
	// RequeueAt is when a step is due even without an event; zero for never.
	RequeueAt time.Time
}

func (o *Outcome) at(due time.Time) {
	if !due.IsZero() && (o.RequeueAt.IsZero() || due.Before(o.RequeueAt)) {
		o.RequeueAt = due
	}
}

// turn is one step of one owner.
type turn struct {
	*Engine
	Outcome
	r    *Rollout
	want Want
}
