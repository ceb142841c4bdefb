// Package cluster is one cluster: [Cluster] is everything that the engine does to managed
// objects, as the account of a revision, and knows of them, [Connection] that of an API server.
//
//	livestate  live objects: one watch per kind, compact records
//	apply      one guarded write, and what its answer means
//	schemas    what the API server publishes of its kinds, and checks against it
package cluster
