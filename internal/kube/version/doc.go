// Package version says which build of Lockstep is running.
package version
