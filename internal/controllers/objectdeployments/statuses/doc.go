// Package statuses writes the engine's report of a set into a status. It has no client and no
// clock.
package statuses
