// Package support creates an archive with the information about a cluster that a maintainer needs:
// it selects the fields of objects, redacts secrets in texts, and limits the archive. Its command
// reads the objects and texts.
package support
