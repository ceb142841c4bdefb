package loader

import (
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
)

// Describe reads the manifest alone. Errors are of type violation.Violations.
func Describe(files Files) (*manifestsv1alpha1.PackageManifest, error) {
	u := readUnit(files, "")
	if err := u.problems.Err(); err != nil {
		return nil, err
	}
	return u.result.Manifest, nil
}
