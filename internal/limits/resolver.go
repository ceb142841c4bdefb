package limits

// Limits of the resolution of dependencies.
const (
	ResolutionSteps     = 3_000_000 // literals that a search looks at: 1,000 packages of 20 versions take some 100,000, all of them half a second
	ResolutionMessages  = 8         // requirements that the explanation of a conflict names
	ResolutionPath      = 16        // packages of a path that a message names
	ResolutionNearest   = 5         // versions that were refused, of one package in an explanation
	ResolutionMinimized = 64        // requirements of a conflict of which those that do not matter are left out, by a search for each
)
