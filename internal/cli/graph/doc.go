// Package graph shows the dependencies between installed packages, as their statuses record them.
//
//	Packages and ClusterPackages ─► Graph: nodes and edges ─► Tree (text), Why (dependents)
//
// It is pure. All results are in the order of namespaces and names, ClusterPackages first,
// regardless of the order of the input. Cycles and diamonds are bounded: each node is drawn once.
package graph
