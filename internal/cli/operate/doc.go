// Package operate holds the commands that show the state of installed packages, and mend it.
//
//	rollout  the command rollout: revisions, and the way back to one
package operate
