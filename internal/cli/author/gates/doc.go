// Package gates reads from the objects of a package which of them the probe of another
// one depends on.
//
//	rights on webhook configurations and APIServices ─┐
//	references, claims, Secrets that others make      ├─► Needs
//	Services and their pods, host names in arguments ─┘
//
// A phase opens when all probes of the phases before it are true. So an object that is probed must not be in an earlier
// phase than what it needs. Rights do not say that a workload waits for what it may write; whether it does cannot be
// read, so it counts as needed.
package gates
