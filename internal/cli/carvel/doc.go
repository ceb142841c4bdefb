// Package carvel makes Lockstep objects of kapp-controller's PackageInstalls and PackageRepositories.
//
//	documents ─► Convert ─► objects to apply, and notes: what became of each field
//
// It is pure. Nothing is dropped without a note. A Package that would be installed differently, because something
// could not be carried over, is paused. Values of Secrets are in neither: the objects refer to the Secrets.
package carvel
