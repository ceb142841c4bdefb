// Package packages reconciles Packages and ClusterPackages. A Package becomes one deployment of the
// same name, in steps that have a file each:
//
//	gather     the Package, its deployment, the objects that the spec names, the finalizer
//	choose     the version that packageRef leads to, among the offers of repositories (package choice)
//	resolve    whether the tag of a Package with an interval has moved
//	decide     which of the other steps is due (pure)
//	load       pull and render in the background (package load)
//	depend     once admitted (reconcile.go), its dependencies are surveyed and decided (package dependencies), and installed and
//	           released (perform.go, release.go); the Ledger of dependencies records which Packages wait for which others
//	deploy     the deployment and its slices (package deployment), or its settings alone
//	report     the status (status.go, pure) and events
//	teardown   replaces all other steps if the Package is being deleted, after its dependents
//
// state.go has all that the steps know of a Package, and reconcile.go their order.
//
// A Package with packageRef is reconciled when its choice can change with the offers of
// repositories (choice.Followers). A version that cannot be chosen changes only the status:
// the installed one stays.
//
// An image is pulled and rendered when its fingerprint changed (spec, versions of Secrets and
// ConfigMaps, environment) or the tag moved. status.unpackedHash records the fingerprint, so that a
// restart does not pull again. The end of a load enqueues the Package. A Package that cannot be
// loaded changes only its own status. A large load is recorded in the status before it starts
// (record.go): a later process that finds the record of another one waits.
//
// An install takes these requests: the finalizer, the deployment, a status and an event. A longer
// one takes one more status and event; slices take one request each and a patch of the template. A
// deletion deletes the deployment and removes the finalizer. At rest there are no requests.
package packages
