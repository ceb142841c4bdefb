package catalogue

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"lockstep.run/lockstep/internal/cli/bundle"
	"lockstep.run/lockstep/internal/cli/describe"
	"lockstep.run/lockstep/internal/cli/desired"
	"lockstep.run/lockstep/internal/cli/output"
)

// Outputs returns what the commands of this package print with -o json.
func Outputs() output.Shapes {
	return output.Shapes{
		"repo list":      {output.List{}},
		"repo get":       {unstructured.Unstructured{}},
		"available list": {[]availablePackage(nil)},
		"available get":  {availableReport{}, []describe.Key(nil)},
		"outdated":       {[]desired.Outdated(nil)},
		"bundle load":    {bundle.Report{}},
	}
}
