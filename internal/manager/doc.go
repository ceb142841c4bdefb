// Package manager runs the engine: it turns flags into a controller-runtime
// manager, connects the parts of the engine and starts them.
//
//	flags ─► Config ─► Run ─► leadership ─► guarded configuration of all clients
//	                    ├───► livestate, apply, schemas ─► engine ─► deployments
//	                    └───► registry.Puller ─► packages, repositories
//
// Only the leader watches and writes. Every client except the Lease's goes
// through leadership.Guard, so that the process does not write once it might
// have lost the Lease. A standby requests the Lease and answers probes. It
// caches Packages and revisions, because these have indices, but no managed
// objects.
//
// Memory: GOMEMLIMIT is the upper limit: set it below the limit of the container, as
// config does. A start collects little garbage. After an idle period, garbage is
// returned to the system and idle connections are closed. The caches keep only the
// fields that decisions read (compact.go).
//
// Start: without an answer of the API server the process waits, alive and not ready.
//
// Exit: an orderly stop ends reconciles, then releases the Lease. A lost Lease
// ends the process with an error.
package manager
