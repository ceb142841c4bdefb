package engines

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// formerFields are the fields of a Package that Package Operator has.
var formerFields = []string{"image", "config", "component", "paused"}

// Losses describes the fields of a package that Package Operator does not know.
func Losses(pkg corev1alpha1.GenericPackage) (lost []string, err error) {
	raw, err := json.Marshal(pkg.PackageSpec())
	if err != nil {
		return nil, fmt.Errorf("read the spec of %s: %w", pkg.GetName(), err)
	}
	var spec map[string]any
	if err := json.Unmarshal(raw, &spec); err != nil {
		return nil, fmt.Errorf("read the spec of %s: %w", pkg.GetName(), err)
	}

	var fields []string
	for _, field := range slices.Sorted(maps.Keys(spec)) {
		if !slices.Contains(formerFields, field) {
			fields = append(fields, "spec."+field)
		}
	}

	if len(fields) > 0 {
		lost = append(lost, strings.Join(fields, ", ")+" is ignored")
	}
	if pkg.PackageSpec().Image == "" {
		lost = append(lost, "spec.image is missing: the installed objects stay, and no new image is unpacked")
	}

	return lost, nil
}
