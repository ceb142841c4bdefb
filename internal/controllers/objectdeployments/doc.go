// Package objectdeployments reconciles ObjectDeployments and ObjectSets, and for package
// objectsetphases ObjectSetPhases: one implementation for all six kinds of both scopes.
//
// The unit of work is an owner: a deployment with all of its sets, or a lone set; an ObjectSetPhase
// is treated as a lone set. The package takes it through steps with a file each, and holds no rules
// of its own:
//
//	gather     the owner and its sets (gather.go), its target (target.go), and its memory (memory.go)
//	load       sets become revisions (stored.go, ancestors.go)
//	sets       package revisions decides which sets are created (create.go), paused, archived, collected (collect.go)
//	step       package engine takes the steps that are due, and records them on the statuses (store.go)
//	report     the statuses (status.go, deployment_status.go; packages statuses and activation have the words) and events
//	teardown   replaces all other steps if the owner is being deleted or archived; orphaned.go: whether its objects stay
//
// state.go has the knowledge and the memory of the steps about an owner, and every file uses it;
// reconcile.go has their order. Owners of other clusters are reconciled in package lanes;
// restore.go comes before the first reconcile.
//
// These records are durable before a later step relies on them: the claim and the opening of the
// first phase, in the first status write of the set; the opening of each further phase, in a status
// write before its first object, with one write for all phases that are passed over; and finished
// Jobs, in a status write of the deployment before any other step.
package objectdeployments
