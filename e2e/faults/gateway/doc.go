// Package gateway stands between a manager process and the API server and does to
// single requests, and to single events of watches, what a network, a busy API
// server or a crash does to them.
//
//	manager ──TLS──► gateway ──TLS──► API server
//	                    │
//	                 Director: what happens to this request, to this event?
//
// A Director chooses; the Gateway carries it out, in the order in which things
// happen on a real network: a request that was passed on is carried to its end
// even if the manager does not live to see the answer, and nothing that a killed
// manager had not sent completely is passed on.
//
// A manager that was killed is started again, as the kubelet does. Each process
// has a lane of its own, so that nothing of a dead one arrives late unless a
// fault says so.
//
// The gateway invents nothing that an API server or a network could not do: a
// stale list is what the API server answers for an earlier resource version, and
// a watch that lags delivers its events in order.
package gateway
