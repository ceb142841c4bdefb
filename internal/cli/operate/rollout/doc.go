// Package rollout holds the command rollout: the revisions of a package or deployment, their
// differences, the timeline of their phases, and the way back to one.
package rollout
