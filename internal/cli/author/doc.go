// Package author holds the commands for those who write packages.
//
//	scaffold     the package that init makes
//	kickstart    objects, rendered charts and bundles → a package
//	threeway     merges what an author and a new release made of the same file
//	lint         looks for mistakes in packages that are valid
//	schemacheck  checks objects against the schemas of their kinds, without a cluster
//	testrunner   runs the tests that a package brings
package author
