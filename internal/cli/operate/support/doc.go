// Package support makes an archive of what a maintainer needs to see of a cluster: it decides which fields of objects are in it,
// takes secrets out of texts, and bounds the archive. Its command reads them.
package support
