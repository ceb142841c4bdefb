// Package cluster is the engine's view of one cluster: [Cluster] has all requests about managed
// objects, as the account of a revision, and all observations of them. [Connection] implements it
// for an API server.
//
//	livestate  live objects: one watch per kind, compact records
//	apply      one guarded write, and the meaning of its answer
//	schemas    the published schemas of the API server, and checks against them
package cluster
