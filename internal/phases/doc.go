// Package phases is the pure core of the engine. From the revisions, the state of the cluster and
// the engine's memory of its own writes, Next decides what to do. It holds no client, clock or
// goroutine, so every rule is tested without a cluster.
//
// The model, from the inside out:
//
//   - Decide judges one object: create, change, correct drift, adopt, delete, release, wait, or
//     refuse it.
//   - A revision's phases are opened one by one. The first write of phase k+1 needs all probes of
//     phases 1 to k true at the same moment (invariant 1). That is a Gate, which the caller records
//     durably before the next call. Phases that need no write and whose probes are true are
//     skipped: one Gate opens them together with the first one behind them.
//   - Each object has one writer (invariant 3): the newest revision that opened the phase the
//     object is in. Older revisions keep the objects that the newer one has not reached.
//   - A Job that succeeded is not created again while its content stays the same: it is in a record
//     (Jobs) that the caller keeps durable before it performs a step.
//   - Teardown visits the phases in reverse. All objects of a phase are removed before it touches
//     the phase before (invariant 6).
//
// These are the rules of rollout.go for an object of an opened phase. The first that applies
// decides whether phase plans a step:
//
//	a newer revision writes it                            taken: the older one plans nothing
//	a deleted policy or webhook that the active revision
//	lacks or has with other content                       taken: it would deny the writes of that revision
//	a Job that succeeded with this content                completed
//	others changed it, and drift is only reported         named in the report
//	it would be created, and supersededBeforeCreate       left to the active revision
//	it has to be waited for, refused or confirmed         reported; it can hold the entry of the phase
//	nothing differs, or labels alone                      counted as written; labels follow in the background
//	otherwise                                             written with the entry of the phase, or at once if that corrects
//
//	supersededBeforeCreate  r is not active, has not succeeded and has not written in the phase before, and no older
//	                        revision has opened the phase that contains the object
//	outdated                this process has not written the live object, no revision with the same content wrote it last,
//	                        and one of these holds: an older revision has it with other content; there are older revisions,
//	                        and none wrote in a phase with it before; or it is lost
//	lost                    a revision before r wrote it last that is not loaded any more, and none after that, up to r, has
//	                        it in a phase that it had written
//
// The stage of a revision (stage.go) has three parts. Each arrow is a method of Revision
// (transitions.go), and its durable record is a condition or a phase of the set's status:
//
//	claim     unclaimed ──Claim──► claimed ──LoseClaim──► lost ──Claim──► claimed
//	rollout   loaded ──Claim──► opened 1 ──Open──► … ──Open──► opened n ──Succeed──► succeeded
//	removal   kept ──Restore──► removing, releasing ──torn down──► archived or deleted: dropped
//
// Claim, Open and Succeed require that the revision is kept; Open and Succeed also require that it
// is claimed. Restore takes over the record of the set, and closes no phase. Obstacles that forbid
// writes at any stage are separate: the revision is paused, blocked or incomplete.
//
// A State is plain values of one moment. Evaluated names the objects whose probes the caller
// evaluates for it. Changed marks a state that could not be read at one moment; no Gate is planned
// on it.
//
// The caller performs the steps of a Plan, puts their outcome into the Memory and calls Next again
// until no step is left. After a crash the Memory is empty. The first steps then only look (Verify,
// Confirm), so that the end state is the same (invariant 4) and a restart with everything in place
// does not write (invariant 5).
package phases
