// Package cluster holds what knows one cluster as one identity sees it.
//
//	livestate    what is live: one watch per kind, compact records
//	apply        one guarded write, and what its answer means
//	schemas      what the API server publishes of its kinds, and checks against it
//	environment  what packages see of the cluster
//	sources      Secrets and ConfigMaps that packages name
package cluster
