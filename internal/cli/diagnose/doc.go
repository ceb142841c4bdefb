// Package diagnose finds out why a package is not available: it follows what its
// status names as blocking down to the pod, the event or the refusal that explains
// it.
//
//	Package ─► ObjectDeployment ─► ObjectSet ─► phase ─► blocking objects
//	                                                        │
//	    a refused write: webhook, quota, rights, collision ─┤
//	    a workload: ReplicaSet ─► pods ─► containers, events ┤
//	    anything else: its conditions and events ───────────┘
//
// The result is a [Diagnosis]: the cause that explains most, its remedy, and the chain that
// leads to it. Only reads are made, with the rights of the caller; what may not be read is
// left out. Texts of the cluster are not escaped.
package diagnose
