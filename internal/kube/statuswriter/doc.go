// Package statuswriter writes the status of one object of the API group, and records events
// about it.
//
// A status is sent alone, by PUT: the API server keeps everything else as it is. A merge
// patch costs it a sixth more, because it encodes, merges and decodes the whole object
// for it; and the spec of a set is large.
//
// Each write names the state that it is based on, so that it fails with a
// conflict after a concurrent write.
package statuswriter
