// Package rollout holds the command rollout: the revisions of a package or deployment, how they differ, when their phases went
// how far, and the way back to one.
package rollout
