// Package cluster is the command line's connection to a cluster: it finds
// packages by the names that people give, follows them by watches, and says of
// the API server's errors what to do.
//
// The kinds are known, so there is no discovery: a command costs the requests
// that it is about and no others.
package cluster
