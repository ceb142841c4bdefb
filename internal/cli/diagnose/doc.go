// Package diagnose finds out why a package is not available: it follows the blocking objects in its
// status down to the pod, the event or the refusal that explains them.
//
//	Package ─► ObjectDeployment ─► ObjectSet ─► phase ─► blocking objects
//	                                                        │
//	    a refused write: webhook, quota, rights, collision ─┤
//	    a workload: ReplicaSet ─► pods ─► containers, events ┤
//	    anything else: its conditions and events ───────────┘
//
// The result is a [Diagnosis]: the cause that explains most, its remedy, and the chain that leads
// to it. The package only reads, with the rights of the caller, and skips objects that the caller
// may not read. Texts of the cluster are not escaped.
package diagnose
