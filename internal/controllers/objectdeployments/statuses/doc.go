// Package statuses says in a status what the engine reports of a set. It has no client and no clock.
package statuses
