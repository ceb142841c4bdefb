package rollout

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/cli/output"
)

// Outputs returns what the commands of this package print with -o json.
func Outputs() output.Shapes {
	return output.Shapes{
		"rollout history":  {output.List{}, unstructured.Unstructured{}},
		"rollout diff":     {objectdiff.Comparison{}},
		"rollout timeline": {timeline{}},
	}
}
