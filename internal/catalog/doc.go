// Package catalog holds the metadata of packages that is known before they are installed.
//
//	fetch       the content of a repository, from its source
//	repository  files and images of repositories
//	versions    which of several versions is chosen, and why
//	offers      which versions a namespace can choose from
//	lockfile    which digests and dependencies a lock pins
package catalog
