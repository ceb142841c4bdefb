// Package watches keeps what the page shows, by watches with the rights of the user.
//
//	Packages, ClusterPackages ─► Board: a row each, in the order of the list
//	one Package with its revisions, while it is looked at ─► Detail: state, revisions, cause
//
// Fields of a package on the Board that no page shows are dropped as it arrives:
// configuration, patches, annotations, managed fields. Where the user may not watch all
// namespaces it is that of the context. Kinds that cannot be watched, and a connection
// that is lost, are notes on every page; the last observed state stays.
//
// Nothing is read again by time. A cause is looked for when a package changes that is looked at and not available.
package watches
