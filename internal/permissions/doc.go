// Package permissions computes the rights that an identity needs to create, correct and delete
// objects.
//
//	objects ─► Needed ─► rules for each namespace, and for the cluster ─► Roles: objects to apply
//
// A package's service account needs exactly these rights, except for the right to read the parameters
// of the admission policies that it binds. The manager itself does the reads,
// watches and writes of the engine's own kinds. The package is pure.
package permissions
