// Package engine rolls the objects of owners out to a cluster. An owner is anything that
// controls objects: a deployment with its sets, a lone set, an ObjectSetPhase, a template.
//
// A caller keeps a Rollout for each owner, puts the wanted revisions into it, and takes
// steps until none is due:
//
//	r := engine.New(owner)                     once
//	r.Start(now, time for probes)              in each reconcile
//	r.Put(revision), e.Drop(r, uid)            as revisions come and go
//	outcome, err := e.Step(ctx, r, want)       while outcome.Again
//	r.Plan(), r.Report(uid)                    the state, for the status
//	e.Background(ctx, r, want)                 steps that come after all other work
//
// Step has the one order of everything else:
//
//	claims lost, watches and templates followed
//	claim     all objects of the current revision ─► Store.Claimed
//	decide    live state ─► probes ─► phases.Next
//	record    Jobs that have finished ─► Store.RecordJobs
//	write     corrections, verifications, removals; References.Take around takeovers
//	enter     the first writes of a phase, checked as a whole
//	open      the next phase ─► Cluster.Confirm ─► Store.Opened
//	succeed   ─► Store.SucceedsAt ─► Store.Succeeded
//
// It does the first of these that is due. Each is durable in the Store before a later one
// relies on it; nothing else here is durable. If a step fails, the next decision finds the
// work that it left.
//
// # What the caller must do
//
//   - Use a Rollout in one reconcile at a time. Call Start first, and the function that it
//     returns at the end; Plan and Report are valid in between. Engine and Tracker are safe
//     for concurrent use.
//   - After a restart, load the revisions of all owners from the Store, call RestoreClaims,
//     and then Prepare before the first Step; it starts the watches. Otherwise a new claim
//     could take objects that an earlier process has claimed. Use RestoreClaim for a
//     revision that is loaded later.
//   - Make a record durable before the method of Store returns without an error. The next
//     write relies on it.
//   - Set Tracker.Wake before the first watch starts. It has to enqueue the owner, because
//     the engine starts no reconcile itself.
//   - Call Step again while Outcome.Again is set. Otherwise enqueue the owner at
//     Outcome.RequeueAt, unless that is zero.
//   - Retry a Step that returns an error. A failure of a single object is not an error: it
//     is in the report of its revision, and the engine retries it after a pause. Call
//     Rollout.Retry to end that pause.
//   - Write the status before Background, which performs only work that can wait.
//   - Drop a revision that the owner no longer has, and release its claims by Claims.Retain.
//     At the end of an owner call Forget, and Claims.Release.
//
// The decisions are in package phases. Each reconcile has a budget of time for probes, and
// results are cached: a probe that is not evaluated yet is Unknown (evaluate.go). A
// teardown does not evaluate probes.
package engine
