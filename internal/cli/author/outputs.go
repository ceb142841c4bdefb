package author

import (
	"lockstep.run/lockstep/internal/cli/author/lint"
	"lockstep.run/lockstep/internal/cli/content"
	"lockstep.run/lockstep/internal/cli/describe"
	"lockstep.run/lockstep/internal/cli/output"
)

// Outputs returns what the commands of this package print with -o json.
func Outputs() output.Shapes {
	return output.Shapes{
		"validate": {content.Findings{}},
		"lint":     {lintReport{}, []lint.Rule(nil)},
		"render":   {output.List{}},
		"inspect":  {describe.Report{}},
		"test":     {testReport{}},
	}
}
