package repository

import (
	"strconv"
	"time"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// Offer is what one repository offers, and what decides between repositories.
type Offer struct {
	// Repository is its name.
	Repository string
	Priority   int32
	Created    time.Time
	Content    *Content
}

// Merge returns the AvailablePackages of all offers, sorted by name and part, each of at most
// limits.AvailablePartBytes as JSON. existing are the present ones in any order: between equal offers, the present owner
// keeps a version. conflicts are the versions, by the name of the repository, that are not offered as a repository has
// them.
func Merge(offers []Offer, existing []corev1alpha1.AvailablePackageSpec) (available []corev1alpha1.AvailablePackageSpec, conflicts map[string][]string) {
	return nil, nil
}

// ObjectName is the metadata.name of a part of an AvailablePackage. Part 0 has the name of the package.
func ObjectName(packageName string, part int32) string {
	if part == 0 {
		return packageName
	}
	return packageName + partSuffix + strconv.Itoa(int(part))
}

// partSuffix precedes the number of a part. No package has a name that ends with it and a number.
const partSuffix = ".part-"
