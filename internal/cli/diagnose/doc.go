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
// The outcome is a [Diagnosis]: the cause in a sentence, what to do about it, and
// the chain that leads to it. Of several blocking objects the one that explains
// most is named as the cause; the others are in the chain.
//
// Only reads are made, by the rights of the caller; what may not be read is left
// out, and said so in the chain. Texts of the cluster are as they are: whoever
// prints them escapes them.
package diagnose
