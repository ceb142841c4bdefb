// Package version reports the running build of Lockstep.
package version
