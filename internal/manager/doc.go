// Package manager runs the engine: it turns flags into a controller-runtime
// manager, connects the parts of the engine and starts them.
//
//	flags ─► Config ─► Run ─► leadership ─► guarded configuration of all clients
//	                    ├───► livestate, apply, schemas ─► engine ─► deployments
//	                    └───► registry.Puller ─► packages, repositories
//
// Only the leader watches and writes. Every client but that of the Lease goes
// through leadership.Guard, so that nothing is written once the Lease may be
// lost. A standby holds no cache: it asks for the Lease and answers
// probes.
//
// Memory: all of it, with garbage and the gaps between live objects, is bounded by the
// live part, unless GOGC is set, and never by more than GOMEMLIMIT: set that below the
// limit of the container, as config does. Garbage is given back to the system, and idle
// connections are closed, when nothing was done for a while. The caches keep what
// decisions read (compact.go).
//
// Start: without an answer of the API server the process waits, alive and not ready.
//
// Exit: an orderly stop ends reconciles, then releases the Lease. A lost Lease
// ends the process with an error.
package manager
