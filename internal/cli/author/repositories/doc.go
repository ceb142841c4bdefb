// Package repositories holds the command repository: files and images that list package images with
// their versions.
package repositories
