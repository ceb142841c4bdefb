// Package objects holds the types that every part of the engine shares: the name of a Kubernetes
// object (Key), the record of a live object (Observed), and a desired object of a revision
// (Desired).
//
// Everything here is a plain value. There is no client, clock or goroutine.
package objects
