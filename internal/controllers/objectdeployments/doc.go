// Package objectdeployments reconciles ObjectDeployments, ObjectSets, and the
// ObjectSetPhases of one class, of both scopes: one implementation for all six kinds.
//
// The unit of work is an owner: a deployment with all of its sets, or a set that
// stands alone. An ObjectSetPhase is a set of one phase that stands alone. One pass gathers them, decides with package
// revisions which sets there are, takes a step of package engine, and reports on the statuses.
// It holds no rules of its own.
//
//	Reconcile ─► gather ─► load ─► revisions.Decide ─► create, pause, archive, collect
//	                        └────► engine.Step ─► store: statuses of sets and deployment
//	                                     └────► report ─► runBackground
//
// Durable before anything that relies on it: the claim and the opening of the
// first phase in the set's first status write, the opening of each further
// phase in a status write before its first object (one write for phases that are
// passed over); Jobs that have finished in one
// of the deployment before any other step.
package objectdeployments
