// Package limits holds every hard limit of the engine with its unit and reason. An error
// names the limit that was hit, with its value.
package limits
