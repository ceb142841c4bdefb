// Package catalog holds the metadata of packages that is known before they are installed.
//
//	fetch       the content of a repository, from its source
//	repository  files and images of repositories
//	versions    which of several versions is chosen, and why
//	offers      which versions a namespace can choose from
//	lockfile    which digests and dependencies a lock pins
//
// The controller of repositories fetches sources and publishes merged offers as AvailablePackages;
// the controller of packages gathers them and selects a version. The command line builds repository
// files and locks with the same packages. Only fetch connects to servers itself.
package catalog
