// Package packages reconciles Packages and ClusterPackages: one implementation
// for both. A Package becomes one deployment of the same name.
//
//	Reconcile ─► gather ─► decide ─► load (in the background) ─► deploy ─► report
//	                └────► tear down, where the Package is being deleted
//
// decide, the shape of the deployment and the status are pure functions of what
// was gathered; the rest carries them out.
//
// An image is pulled and rendered when what it is rendered from changed: what the
// spec says of its content, the Secrets and ConfigMaps that the spec names, or the
// environment, all of which are watched; or when a tag has moved that the Package
// looks after. status.unpackedHash records what was unpacked last, so a restart
// pulls nothing: it covers the versions of Secrets, and nothing of their content.
// While something of it is not known, after a start, nothing is decided by it.
// Loading goes on in the background, a few at a time for each registry, and its
// end wakes the Package: no reconcile waits for a registry.
//
// A Package that cannot be loaded changes nothing but its own status; what is
// installed goes on as it is.
//
// Requests of one install: a patch of the finalizer, the deployment, one status
// where it is over within limits.PackageStatusInterval, a few where it is not,
// and two events; with slices each slice and a patch of the template. A deletion
// deletes the deployment and takes the finalizer off. At rest and after a restart
// there are none.
package packages
