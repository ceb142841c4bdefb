// Package catalog holds what is known of packages before one is installed.
//
//	repository  files and images of repositories
//	lockfile    which digests and dependencies a lock pins
package catalog
