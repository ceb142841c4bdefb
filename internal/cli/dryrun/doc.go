// Package dryrun foresees what an install or an upgrade of a package does to the
// objects of a cluster, without writing any.
//
//	rendered template ─┐
//	live revisions ────┴─► controller of deployments ─► simulatedCluster ─► dry runs ─► API server
//	                                   ▲                      │
//	                                   └── what each left ────┘
//
// It holds no rules of a rollout: the controller of deployments runs as it does in the
// manager. Its home has the deployment and its sets in memory, with the new template. Its
// target is a [cluster.Cluster] in which a write is a dry run, and the response is what the
// next decision sees. Every probe counts as true. What is different before and after is the
// [Plan].
//
// Where the engine would stop, the reason is a [Refusal]. The plan goes on as if
// it were gone, so that the rest is shown as well, and says of each phase
// whether it would be reached.
//
// What a dry run cannot tell is marked as unverified: kinds whose
// CustomResourceDefinition comes or changes with the package, namespaces that come
// with it, webhooks without dry runs, and what the user may not write. There the
// template is compared with the live values, and resources are checked against the
// definition as it will be.
//
// Each dry run stands alone, so quotas that the new objects exhaust together are
// counted apart: by objects and by the storage of claims, not by what pods take.
// It cannot foresee what others do meanwhile, and which probes fail.
//
// No value of a Secret, and of no object that holds or held one, is in a plan.
package dryrun
