// Package gateway is a proxy between a manager process and the API server. It injects the
// faults of a network, of a busy API server or of a crash into single requests and into
// single events of watches.
//
//	manager ──TLS──► gateway ──TLS──► API server
//	                    │
//	                 Director: what happens to this request, to this event?
//
// A Director chooses the fault, and the Gateway injects it. Requests behave as on a real
// network: once a request is passed on, it completes even if the manager does not live to
// see the answer, and a request that a killed manager had only sent in part is not passed on.
//
// The gateway restarts a killed manager, as the kubelet does. Each process has its own lane,
// so that requests of a dead process only arrive late if a fault requires it.
//
// The gateway only injects faults that an API server or a network can produce: a stale list
// is the API server's answer for an earlier resource version, and a lagging watch delivers
// its events in order.
package gateway
