package operate

import (
	"lockstep.run/lockstep/internal/cli/diagnose"
	"lockstep.run/lockstep/internal/cli/graph"
	"lockstep.run/lockstep/internal/cli/output"
)

// Outputs returns what the commands of this package print with -o json.
func Outputs() output.Shapes {
	return output.Shapes{
		"status":  {statusReport{}},
		"explain": {diagnose.Diagnosis{}},
		"deps":    {dependencyReport{}},
		"lock":    {graph.Lock{}},
	}
}
