package repository

import (
	"errors"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// Content is what one repository offers.
type Content struct {
	// Packages by name.
	Packages []Package
	// Problems name the documents and versions that are not offered, or not whole, with file, document and field. At
	// most limits.RepositoryProblems, the last of which then counts the others.
	Problems []string
}

// Package is one package with the versions in which a repository offers it.
type Package struct {
	Name    string
	Display *corev1alpha1.PackageDisplay
	// Versions, the lowest first, without Repository.
	Versions []corev1alpha1.AvailableVersion
}

// Read reads the documents of a repository out of files by path: *.yaml, *.yml and *.json, in any folder. A document
// that cannot be used becomes a problem. The error is about the whole: it is too large, or offers too much.
func Read(files map[string][]byte) (*Content, error) {
	return nil, errors.New("not implemented")
}
