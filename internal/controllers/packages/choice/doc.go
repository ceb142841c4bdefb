// Package choice finds the version that the packageRef of a Package leads to, among the offers of repositories.
//
//	catalogue.go   the offers that a namespace sees, and the choice among them, which is remembered until one of them changes
//	candidates.go  the choice itself (pure), and the content to load that it leads to
//	followers.go   the Packages whose choice may change with an offer, a repository or the labels of a namespace
//	indexes.go     the indexes of the caches that all of these read
//
// It reads caches alone, and writes nothing. A version that cannot be chosen changes no installed one: the Choice keeps its origin.
package choice
