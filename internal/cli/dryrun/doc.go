// Package dryrun foresees what an install or an upgrade of a package does to the
// objects of a cluster, without writing any.
//
//	rendered template ─┐                           ┌─► dry runs ─► API server
//	live revisions ────┼─► phases.Next ─► steps ─► World
//	live objects ──────┘        ▲                   │
//	                            └── what each left ─┘
//
// It holds no rules of a rollout: [phases.Next] decides, as it does in the
// manager, and the World takes the place of the executor. A step is sent as a dry
// run, its answer becomes what the next decision sees, every probe counts as
// true, and so on until nothing is left to do. What is different before and after
// is the [Plan].
//
// Where the engine would stop, the reason is a [Refusal]. The plan goes on as if
// it had been mended, so that the rest is shown as well, and says of each phase
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
