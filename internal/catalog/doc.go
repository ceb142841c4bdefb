// Package catalog holds the metadata of packages that is known before one is installed.
//
//	fetch       the content of a repository from where its source says
//	repository  files and images of repositories
//	versions    which of several versions is chosen, and why
//	offers      which versions a namespace may choose from
//	lockfile    which digests and dependencies a lock pins
package catalog
