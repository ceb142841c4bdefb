// Package discovery keeps the kinds that the API server serves, with versions and scope.
//
//		/api, /apis ──────────┐
//		watch of CRDs ────────┼─► index ─► Find, Mapping, Options.Changed
//		watch of APIServices ─┘
//
//	  - Discovery is read at the start, and when an APIService or the API server's
//	    version changes. Kinds of CRDs follow from the watch of CRDs alone, which is
//	    ahead of discovery. Nothing polls.
//	  - The version is read again after a watch of CRDs that ended before its time: the
//	    API server might have been replaced.
//	  - A group that cannot be read keeps its last state. A kind of it that was never read is
//	    unknown, which differs from not served.
package discovery
