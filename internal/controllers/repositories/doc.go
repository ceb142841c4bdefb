// Package repositories reconciles PackageRepositories and ClusterPackageRepositories into AvailablePackages and
// ClusterAvailablePackages. All repositories of a namespace, or of the cluster, are one catalogue and one request:
//
//	gather     the repositories, the published offers, the versions of the Secrets and ConfigMaps that the sources name
//	decide     for each repository, whether to fetch it (pure)
//	fetch      in the background (pipeline.go), into content packed by package
//	publish    the packages whose offers changed are merged, and the parts that differ are written
//	report     the status of each repository (status.go, pure) and events
//
// A repository is fetched when its source, or a Secret or ConfigMap of it, changed, once in its interval, and on the
// annotation package-operator.run/retry; a static source once. What it offered last stays published until a valid
// content replaces it. A deleted repository needs no finalizer: versions of one that does not exist are withdrawn.
//
// The published offers are the record of the repositories' contents: after a restart
// nothing has to be fetched in whole, where their digest is the one in the status
// (offers.go). They differ where a repository has versions that are published as another
// one has them, and where an earlier process ended amid its writes. The caches keep a
// digest in place of texts and schemas (compact.go); contents are compressed in memory.
//
// Requests of a new version of one package: the part that has it, the status, one event. At rest there are none, and
// one conditional request to each source in its interval.
//
// What the steps know, decide and remember is in state.go, which every file stands on; reconcile.go has their order.
package repositories
