// Package gates finds the objects of a package that the probe of another object depends on.
//
//	rights on webhook configurations and APIServices ─┐
//	references, claims, Secrets that others make      ├─► Needs
//	Services and their pods, host names in arguments ─┘
//
// A phase opens when all probes of the phases before it are true. So a probed object must not be in
// an earlier phase than the objects it needs. Rights do not prove that a workload waits for the
// objects it can write. No other part of a package would prove it, so these objects are treated as
// needed.
package gates
