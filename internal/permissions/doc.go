// Package permissions computes the rights that an identity needs to create, correct and delete objects.
//
//	objects ─► Needed ─► rules for each namespace, and for the cluster ─► Roles: objects to apply
//
// They are what a package's service account needs, and no more: reads, watches and the engine's own kinds are matters of the
// manager. It is pure.
package permissions
