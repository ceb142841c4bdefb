// Package cluster is one cluster: [Cluster] is everything that the engine does to managed
// objects, as the account of a revision, and knows of them. [Connection] implements it for
// an API server.
//
//	livestate  live objects: one watch per kind, compact records
//	apply      one guarded write, and the meaning of its answer
//	schemas    the published schemas of the API server, and checks against them
package cluster
