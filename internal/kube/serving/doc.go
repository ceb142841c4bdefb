// Package serving bounds the connections of a port, whichever clients it has.
//
// A limited listener keeps a fixed number of connections. One more closes the oldest that no
// handler holds, so that a client that sends nothing, or never ends its request, keeps its place
// only until another needs it. http.Server bounds the sizes and times of requests.
package serving
