package drift

import "slices"

// Residue returns the fields, such as spec.clusterIP, that a former template has, the next one
// lacks, and an object still has with the former value, unless a fresh object of the next
// template has it as well. Lists are not looked into.
func Residue(former, next, object, fresh map[string]any) []string {
	var fields []string
	for key, v := range former {
		if key != "metadata" && key != "status" {
			residue(key, v, next[key], object[key], fresh[key], &fields)
		}
	}
	slices.Sort(fields)
	return fields
}

func residue(path string, former, next, object, fresh any, fields *[]string) {
	below, isMap := former.(map[string]any)
	if !isMap {
		if next == nil && !isEmpty(former) && object != nil && same(former, object) && !same(object, fresh) && path != "spec.replicas" {
			*fields = append(*fields, path)
		}
		return
	}
	nextFields, _ := next.(map[string]any)
	objectFields, _ := object.(map[string]any)
	freshFields, _ := fresh.(map[string]any)
	for key, v := range below {
		residue(path+"."+key, v, nextFields[key], objectFields[key], freshFields[key], fields)
	}
}
