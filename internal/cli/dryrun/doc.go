// Package dryrun foresees what an install or an upgrade of a package does to the
// objects of a cluster, without writing any.
//
//	rendered template ─┐
//	live revisions ────┴─► controller of deployments ─► simulatedCluster ─► dry runs ─► API server
//	                                   ▲                      │
//	                                   └── what each left ────┘
//
// The controller of deployments runs as in the manager. Its home has the deployment and its
// sets in memory, with the new template. Its target is a [cluster.Cluster] whose writes are
// dry runs, and whose reads return their responses. All probes succeed. The [Plan] compares
// the objects before and after.
//
// Where the objects are in another cluster, what reads and dry runs them there is connected
// by the kubeconfig of the package; the deployment, its sets and the claims are at home.
//
// Where the engine would stop, the reason is a [Refusal]; the simulation continues without
// it, and each phase has whether it would be reached.
//
// Unverified are objects without a conclusive dry run: of kinds and namespaces that come with
// the package, of webhooks without dry runs, and those that the user may not write. There the
// template is merged into the live object, and validated against the future definition.
//
// Each dry run stands alone, so a quota that several new objects exhaust together cannot be
// foreseen, nor can failing probes and changes by other clients.
//
// Package definitions follows CustomResourceDefinitions, and knows no simulation.
//
// No value of a Secret, nor of an object with values of one, is in a plan.
package dryrun
