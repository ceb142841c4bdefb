// Package engine rolls the objects of owners out to a cluster. An owner is whatever
// controls objects: a deployment with its sets, a lone set, an ObjectSetPhase, a template.
//
// A caller keeps a Rollout for each owner, puts the revisions that the owner wants into
// it, and takes steps until one is idle:
//
//	r := engine.New(owner)                     once
//	r.Begin(now, time for probes)              in each reconcile
//	r.Put(revision), e.Drop(r, uid)            as revisions come and go
//	outcome, err := e.Step(ctx, r, want)       while outcome.Again
//	r.Plan(), r.Report(uid)                    how things stand, for the status
//	e.Background(ctx, r, want)                 what comes after all other work
//
// An event of an object, by Tracker.Wake, or the time of the outcome starts the next
// reconcile. Step has the one order of everything else:
//
//	claims lost, watches and templates followed
//	claim     all objects of the current revision ─► Store.Claimed
//	decide    live state ─► probes ─► phases.Next
//	record    Jobs that have finished ─► Store.RecordJobs
//	write     corrections, verifications, removals; References.Take around what takes over
//	enter     the first writes of a phase, checked as a whole
//	open      the next phase ─► Cluster.Confirm ─► Store.Opened
//	succeed   ─► Store.SucceedsAt ─► Store.Succeeded
//
// It does the first of these that is due. Each is durable in the Store before anything
// that relies on it; nothing else here is durable. After a crash the caller restores
// revisions from its Store, claims by RestoreClaim, and calls Prepare before the watches
// start. What a failed step left is in the next decision.
//
// A Rollout is used by one reconcile at a time; Engine and Tracker, which the watches of
// all kinds share, are safe for concurrent use. The decisions are in package phases.
//
// Each reconcile has a budget of time for probes, and results are cached: a probe that is
// not evaluated yet is Unknown (evaluate.go). A teardown evaluates none.
package engine
