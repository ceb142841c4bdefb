// Package packages reconciles Packages and ClusterPackages: one implementation for both. A
// Package becomes one deployment of the same name. Reconcile takes it through these steps,
// each in the file of its name:
//
//	gather     the Package, its deployment, and what the spec names; the finalizer
//	resolve    whether the tag of a Package with an interval has moved
//	decide     which of the other steps is due (pure)
//	load       pull and render in the background (pipeline.go), a few for each registry
//	deploy     slices (slices.go) and the deployment (template.go), or its settings alone
//	report     the status (status.go, pure) and events
//	teardown   instead of all, where the Package is being deleted
//
// The way of one Package: its event has it gathered; the decision is to load. The end of the
// load enqueues it again: it is gathered, deployed and reported. Each event of its deployment
// has it gathered and reported. What this process remembers of it is one state (memory.go).
//
// An image is pulled and rendered when its fingerprint changed: what the spec states of the
// content, the Secrets and ConfigMaps that the spec names, the environment; or when the tag
// moved. status.unpackedHash records the fingerprint, so that a restart pulls nothing. It
// covers the versions of Secrets, and nothing of their content. While an input is not known,
// after a start, nothing is decided.
//
// A Package that cannot be loaded changes only its own status; what is installed stays.
//
// Requests of one install: a patch of the finalizer, the deployment, one status where it
// ends within limits.PackageStatusInterval, a few where it does not, and two events; with
// slices each slice and a patch of the template. A deletion deletes the deployment and
// removes the finalizer. At rest and after a restart there are none.
package packages
