package planning

import (
	"lockstep.run/lockstep/internal/cli/dryrun"
	"lockstep.run/lockstep/internal/cli/output"
)

// Outputs returns what the commands of this package print with -o json.
func Outputs() output.Shapes {
	return output.Shapes{"plan": {dryrun.Plan{}}, "rehearse": {rehearsalReport{}}, "rbac": {output.List{}}}
}
