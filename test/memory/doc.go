// Package memory is an in-memory cluster for simulations: an API server in few lines, with resource
// versions, guards, finalizers and server-side apply, and connections to it, whose live state lags
// behind until an event is delivered.
//
// It is single-threaded. Programs must not import it.
package memory
