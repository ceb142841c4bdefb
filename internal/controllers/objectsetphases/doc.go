// Package objectsetphases is the controller of the ObjectSetPhases of one class, of both scopes.
// Package objectdeployments reconciles each of them as a lone set with one phase: along with all
// other owners in the manager, or alone in an agent, which rolls out to another cluster. This
// package makes that set:
//
//	read       an ObjectSetPhase, the fields of its set and deployment that matter, and whose objects it takes over (relations.go, pure)
//	set        spec and status of the set, and how its status is stored (pure)
//	keys       which ObjectSetPhases an event of a phase, a set or a deployment concerns
//
// If its set is being removed, or no longer exists, an ObjectSetPhase performs only its own
// removal.
package objectsetphases
