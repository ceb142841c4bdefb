package repository

import (
	"errors"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
)

// EntryOf returns the entry of a package image, with what a catalogue shows of it: image is its repository, without tag
// and digest, digest such as sha256:…, readme the description where the manifest has none, provides the APIs of the
// definitions in the package. The manifest has to state spec.version.
func EntryOf(m *manifestsv1alpha1.PackageManifest, image, digest string, readme []byte, provides []corev1alpha1.ProvidedAPI) (Entry, error) {
	return Entry{}, errors.New("not implemented")
}
