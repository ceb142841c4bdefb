// Package operate holds the commands that show the state of installed packages, and repair it.
//
//	rollout  the command rollout: revisions, and the way back to one
package operate
