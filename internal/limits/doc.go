// Package limits holds every hard limit of the engine, each with the reason
// beside it, so that a reader finds the bound of any input in one place. A
// limit that is hit is named in the error together with its value.
package limits
