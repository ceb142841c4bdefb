// Package repositories holds the command repository: files and images that list package images with
// their versions.
//
//	entries, packages ─► build ─► file or image
//
// The commands that edit a file in place are Package Operator's, and hidden.
package repositories
