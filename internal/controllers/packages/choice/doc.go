// Package choice finds the version that the packageRef of a Package leads to, among the offers of
// repositories.
//
//	catalogue.go   the offers that a namespace sees, and the choice among them, which is remembered until one of them changes
//	candidates.go  the choice itself (pure), and the content to load that it leads to
//	followers.go   the Packages whose choice can change with an offer, a repository or the labels of a namespace
//	indexes.go     the indexes of the caches that all of these read
//
// It reads only caches, and does not write. If a version cannot be chosen, the installed one stays:
// the Choice keeps its origin.
package choice
