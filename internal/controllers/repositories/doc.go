// Package repositories reconciles PackageRepositories and ClusterPackageRepositories into
// AvailablePackages and ClusterAvailablePackages. All repositories of a namespace, or of the
// cluster, are one catalogue and one request:
//
//	gather     the repositories, the published offers, the versions of the Secrets and ConfigMaps that the sources name
//	decide     for each repository, whether to fetch it (pure)
//	fetch      in the background (pipeline.go), into content packed by package
//	publish    the packages whose offers changed are merged, and the parts that differ are written
//	report     the status of each repository (status.go, pure) and events
//
// A repository is fetched when its source, or a Secret or ConfigMap of it, changed, once in its
// interval, and on the annotation package-operator.run/retry; a static source once. Its last offers
// stay published until a valid content replaces them. A deleted repository does not need a
// finalizer: versions of a repository that does not exist are withdrawn.
//
// The published offers are the record of the repositories' contents. After a restart, a repository
// does not have to be fetched in whole if the digest of its offers is the one in the status
// (offers.go). The digests differ if the repository has versions that are published as another one
// has them, or if an earlier process ended amid its writes. The caches keep a digest in place of
// texts and schemas (compact.go); contents are compressed in memory.
//
// Requests of a new version of one package: the part that has it, the status, one event. At rest
// there are none, and one conditional request to each source in its interval.
//
// state.go has the knowledge, the decisions and the memory of the steps, and every file uses it;
// reconcile.go has their order.
package repositories
