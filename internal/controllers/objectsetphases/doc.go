// Package objectsetphases is the controller of the ObjectSetPhases of one class, of both scopes. Each is reconciled by package
// objectdeployments as a set of one phase that stands alone: there with all other owners, or by an agent, which has nothing
// else and rolls out to another cluster. This package says what that set is:
//
//	read       an ObjectSetPhase, what the set and the deployment say that made it, and whose objects it takes over (relations.go, pure)
//	set        spec and status of the set, and how its status is stored (pure)
//	keys       which ObjectSetPhases an event of a phase, a set or a deployment concerns
//
// For an ObjectSetPhase whose set is being removed, or is gone, nothing is written beside its removal.
package objectsetphases
