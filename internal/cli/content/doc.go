// Package content reads, checks and writes the content of packages: folders, images in registries,
// and files of objects.
//
// A problem of a package is a Finding, with its place and remedy.
package content
