// Package memory is a cluster in memory, for simulations: an API server in few lines, with
// resource versions, guards, finalizers and server-side apply, and connections to it, whose
// live state lags behind until an event is delivered.
//
// It is single-threaded. It must not be linked into the programs.
package memory
