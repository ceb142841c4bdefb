// Package objectdeployments reconciles ObjectDeployments and ObjectSets, and for package objectsetphases ObjectSetPhases:
// one implementation for all six kinds of both scopes.
//
// The unit of work is an owner: a deployment with all of its sets, or a set that stands alone, as which an ObjectSetPhase
// counts. It is taken through steps that have a file each, and holds no rules of its own:
//
//	gather     the owner and its sets (list.go, former.go), its target (target.go), and its memory (memory.go)
//	load       sets become revisions (stored.go, ancestors.go)
//	sets       package revisions decides which there are: created (template.go, create.go), paused, archived, collected (collect.go)
//	step       package engine takes the steps that are due, and records them on the statuses (store.go)
//	report     the statuses (status.go, deployment_status.go; packages statuses and activation have the words) and events
//	teardown   instead of all, where the owner is being deleted or archived; orphaned.go: whether its objects stay
//
// What the steps know of an owner and remember is in state.go, which every file stands on; reconcile.go has their order. Owners
// of other clusters are reconciled in package lanes; restore.go comes before the first reconcile.
//
// Durable before anything that relies on it: the claim and the opening of the
// first phase in the set's first status write, the opening of each further
// phase in a status write before its first object (one write for phases that are
// passed over); Jobs that have finished in one
// of the deployment before any other step.
package objectdeployments
