// Package manager runs the engine: it turns flags into a controller-runtime
// manager, connects the parts of the engine and starts them.
//
//	flags ─► Config ─► Run ─► leadership ─► guarded configuration of all clients
//	                    ├───► livestate, apply, schemas ─► rollout ─► deployments
//	                    └───► registry, loader ─► packages
//
// Only the leader watches and writes. Every client but that of the Lease goes
// through leadership.Guard, so that nothing is written once the Lease may be
// someone else's. A standby holds no cache: it asks for the Lease and answers
// probes.
//
// Memory: garbage is bounded by what is live, and by less of it the more that is,
// unless GOGC is set; it is given back to the system when nothing was done for a
// while. Set GOMEMLIMIT below the limit of the container, as config does. The caches
// keep of our own kinds what decisions ask for, and equal values once (slim.go). An
// event is forgotten when it was sent.
//
// Exit: an orderly stop ends reconciles, then releases the Lease. A lost Lease
// ends the process with an error.
package manager
