// Package limits holds every hard limit of the engine with its unit and reason. An error
// names the limit that was hit, with its value. The groups "Limits of ..." are listed in
// docs/reference/limits.md, except for limits that users do not notice: their comments
// start with "internal:".
package limits
