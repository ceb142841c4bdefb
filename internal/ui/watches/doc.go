// Package watches keeps the state that pages show, by watches with the rights of the user.
//
//	Packages, ClusterPackages ─► Board: a row each, in the order of the list
//	one Package with its revisions, while a page shows it ─► Detail: state, revisions, cause
//
// The Board drops all fields of a package that no page shows as soon as it arrives: configuration,
// patches, annotations, managed fields. If the user may not watch all namespaces, the Board has
// only the namespace of the context. Kinds that cannot be watched, and a lost connection, are notes
// on every page, and the last observed state stays.
//
// There is no periodic read. The search for a cause starts if a package on a page changes and is
// not available.
package watches
