// Package dryrun predicts what an install or an upgrade of a package does to the objects of a
// cluster, without writing any.
//
//	rendered template ─┐
//	live revisions ────┴─► controller of deployments ─► simulatedCluster ─► dry runs ─► API server
//	                                   ▲                      │
//	                                   └── results of each ───┘
//
// The controller of deployments runs as in the manager. Its home has the deployment and its sets in
// memory, with the new template. Its target is a [cluster.Cluster] whose writes are dry runs, and
// whose reads return their responses. All probes succeed. The [Plan] compares the objects before
// and after.
//
// If the objects are in another cluster, the kubeconfig of the package connects the reads and dry
// runs there. The deployment, its sets and the claims are at home.
//
// If the engine would stop, the reason is a [Refusal]. The simulation continues without it, and
// each phase records whether it would be reached.
//
// Unverified are objects without a conclusive dry run: objects of kinds and namespaces that the
// package itself creates, objects with webhooks that do not support dry runs, and objects that the
// user may not write. For these, the template is merged into the live object.
//
// Each dry run is separate. So a quota that several new objects exhaust together cannot be
// predicted, nor can failing probes and changes by other clients.
//
// A plan never has a value of a Secret, or of an object with values of one.
package dryrun
