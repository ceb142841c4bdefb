// Package objects holds the vocabulary that every part of the engine shares:
// how a Kubernetes object is named (Key), what is remembered of a live one
// (Observed), and what a revision wants of it (Desired).
//
// Everything here is a plain value: no client, clock or goroutine.
package objects
