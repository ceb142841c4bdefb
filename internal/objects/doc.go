// Package objects holds the types that every part of the engine shares: the name of a
// Kubernetes object (Key), the record of a live one (Observed), and the desired one of a
// revision (Desired).
//
// Everything here is a plain value: no client, clock or goroutine.
package objects
