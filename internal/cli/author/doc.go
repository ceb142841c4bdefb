// Package author holds the commands for authors of packages and of repositories, which work without a cluster.
//
//	scaffold     the package that init creates
//	kickstart    objects, rendered charts and bundles → a package
//	threeway     merges the changes of an author and of a new release
//	gates        what has to be there before the probe of an object becomes true
//	lint         finds mistakes in valid packages
//	schemacheck  checks objects against the schemas of their kinds, without a cluster
//	testrunner   runs the tests of a package
//	fields       reads nested values of objects
package author
