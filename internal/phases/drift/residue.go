package drift

import (
	"slices"
	"strings"
)

// Residue returns the fields, such as spec.clusterIP, that a former template has, the next one
// lacks, and an object still has with the former value. It skips fields that a fresh object of the
// next template has as well, or that another manager owns, and does not look into lists.
func Residue(former, next, object, fresh map[string]any, owned func(path []string) bool) []string {
	r := residues{owned: owned}
	for key, v := range former {
		if key != "metadata" && key != "status" {
			r.add([]string{key}, v, next[key], object[key], fresh[key])
		}
	}
	slices.Sort(r.fields)
	return r.fields
}

type residues struct {
	owned  func(path []string) bool
	fields []string
}

func (r *residues) add(path []string, former, next, object, fresh any) {
	below, isMap := former.(map[string]any)
	if !isMap {
		stays := next == nil && !isEmpty(former) && object != nil && same(former, object) && !same(object, fresh)
		if name := strings.Join(path, "."); stays && name != "spec.replicas" && !r.owned(path) {
			r.fields = append(r.fields, name)
		}
		return
	}

	nextFields, _ := next.(map[string]any)
	objectFields, _ := object.(map[string]any)
	freshFields, _ := fresh.(map[string]any)
	for key, v := range below {
		r.add(append(slices.Clone(path), key), v, nextFields[key], objectFields[key], freshFields[key])
	}
}
