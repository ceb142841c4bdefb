// Package serving bounds the connections of a port, whoever its clients are.
//
// A limited listener keeps a fixed number of connections. One more closes the oldest that no handler holds, so that a client that
// sends nothing, or never ends its request, keeps its place only until another needs it. Sizes and times of requests are a matter
// of http.Server.
package serving
