package phases

import (
	"time"

	"lockstep.run/lockstep/internal/objects"
)

// Plan has the next steps and the present state.
type Plan struct {
	// Steps can be performed concurrently and in any order.
	Steps []Step
	// Entry is a phase whose steps have to be checked as a whole before the first one is performed;
	// nil if there is none.
	Entry *Entry
	// Gate are the phases to open next; nil if there are none. The caller records them durably,
	// calls Revision.Open and plans again.
	Gate *Gate
	// Jobs is the record of Jobs, which has to be written before any step.
	Jobs Jobs
	// Retain are objects that revisions should retain once that is recorded.
	Retain map[*Revision][]objects.Key
	// Spared are objects that the steps release instead of deleting, with the reasons. The caller
	// records them before any step.
	Spared []Spared
	// Reports are parallel to State.Revisions.
	Reports []Report
	// TornDown means that all objects to be removed no longer exist.
	TornDown bool
	// Left are strays that the teardown does not wait for.
	Left []objects.Key
	// Retry is when to plan again even if nothing happens; zero means never.
	Retry time.Time
}

// Step is one action on one object.
type Step struct {
	Action Action
	Key    objects.Key
	// Desired and Metadata are the content to write; Desired is nil for removals.
	Desired  *objects.Desired
	Metadata objects.ManagedMetadata
	Labels   objects.Digest
	// Account performs the step, if it changes or tries to change more than our own metadata.
	Account objects.Account
	// Live is the record that the decision is based on; nil if the object is absent.
	Live *objects.Observed
	// Background means that the step comes after all other work.
	Background bool
	// Report means that a Verify that finds other values records the desired ones, so that the
	// difference is reported and left alone.
	Report bool
	// Foreign means that the engine did not write the adopted object: fields that kubectl or Helm
	// own become the engine's.
	Foreign bool
	// Retainer is the revision that should retain the object.
	Retainer *Revision
}

// Entry is the first write of a phase. Before it, all objects to create are checked against the
// served schemas, and all changes are dry-run.
type Entry struct {
	Revision *Revision
	Phase    int
	Steps    []Step
}

// Gate is a phase that can be opened, along with the phases before it that need no write.
type Gate struct {
	Revision *Revision
	// Phase is the first phase to open and Last the last one. The phases before Last are already
	// complete: their probes are true at the same moment as the earlier phases', so that one record
	// is enough.
	Phase, Last int
	// Preopened means that the phases are durably open, and only have to start.
	Preopened bool
	// Probed are the objects of the phases before Last that probes select, with the evaluated
	// resourceVersion. It is set if they are of more than one kind, because each kind has its own
	// watch, or if their watch might still show the state before the revision. The caller proves
	// that they are current at one moment, and reports this with Revision.Confirm.
	Probed map[objects.Key]string
}
