package repository

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
)

// ObjectName is the metadata.name of a part of an AvailablePackage. Part 0 has the name of the
// package.
func ObjectName(packageName string, part int32) string {
	if part == 0 {
		return packageName
	}
	return packageName + partSuffix + strconv.Itoa(int(part))
}

// partSuffix precedes the number of a part. No package name ends with it and a number.
const partSuffix = ".part-"

// shard fills parts with versions, starting with the lowest, so that a version above all others
// changes only the last part.
func (m *merger) shard(name string, winners []claim) []corev1alpha1.AvailablePackageSpec {
	part := corev1alpha1.AvailablePackageSpec{PackageName: name}
	// The description is of the repository with the highest version that has one.
	for _, winner := range slices.Backward(winners) {
		if d := winner.pkg.Display; d != nil && jsonSize(d) <= limits.AvailableDisplayBytes {
			part.Display = d
			break
		}
	}

	var parts []corev1alpha1.AvailablePackageSpec
	size, empty := envelope(part), envelope(corev1alpha1.AvailablePackageSpec{PackageName: name})
	for _, winner := range winners {
		v := *winner.version
		v.Repository = winner.offer.Repository
		n := jsonSize(v) + len(",")
		if empty+n > limits.AvailablePartBytes {
			m.conflict(winner, fmt.Sprintf("it has %d bytes; the limit is %d: shorten its notes, schema or files", n, limits.AvailablePartBytes-empty))
			continue
		}
		if size+n > limits.AvailablePartBytes {
			parts = append(parts, part)
			part = corev1alpha1.AvailablePackageSpec{PackageName: name, Part: part.Part + 1}
			size = empty
		}
		part.Versions = append(part.Versions, v)
		size += n
	}

	if len(part.Versions) == 0 && len(parts) == 0 {
		return nil
	}

	return append(parts, part)
}

// envelope is the size of a part without its versions.
func envelope(part corev1alpha1.AvailablePackageSpec) int {
	return jsonSize(part) + len(`,"part":2147483647,"versions":[]`)
}

// jsonSize is the size of a value as JSON. A value that cannot be encoded has the maximum.
func jsonSize(v any) int {
	data, err := json.Marshal(v)
	if err != nil {
		return math.MaxInt32
	}
	return len(data)
}
