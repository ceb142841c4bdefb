// Package author holds the commands for authors of packages and of repositories, which work without
// a cluster.
//
//	newpackage    the files of the package that init creates
//	kickstart     objects, rendered charts and bundles → a package
//	gates         which objects the probe of another one depends on
//	lint          finds mistakes in valid packages
//	schemacheck   checks objects against the schemas of their kinds, without a cluster
//	testrunner    runs the tests of a package
//	repositories  the command repository: lists of package images
package author
