// Package carvel turns kapp-controller's PackageInstalls and PackageRepositories into objects of
// Lockstep.
//
//	documents ─► Convert ─► objects to apply, and notes about the fields that were not carried over
//
// It is pure. Every dropped field has a note. A Package is paused if it would be installed
// differently because something could not be carried over. The result never has the values of
// Secrets: the objects refer to the Secrets.
package carvel
