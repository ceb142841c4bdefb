package sources

import (
	"github.com/google/go-containerregistry/pkg/name"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// Reference returns the reference to pull for an image of a Package. By default a tag is resolved
// again if the spec has changed.
func Reference(pkg corev1alpha1.GenericPackage, image string, changed bool) string {
	switch pkg.PackageSpec().ImagePullPolicy {
	case corev1alpha1.ImagePullPolicyAlways:
		return image
	case corev1alpha1.ImagePullPolicyIfNotPresent, corev1alpha1.ImagePullPolicyNever:
		return pinned(pkg, image)
	}
	if changed {
		return image
	}
	return pinned(pkg, image)
}

// pinned returns the reference by the digest that was unpacked last, or the image if the digest is
// unknown.
func pinned(pkg corev1alpha1.GenericPackage, image string) string {
	resolved := pkg.PackageStatus().Resolved
	if resolved == nil || resolved.Image != image || resolved.Digest == "" {
		return image
	}
	return ByDigest(image, resolved.Digest)
}

// ByDigest returns the reference to an image by a digest.
func ByDigest(image, digest string) string {
	ref, err := name.ParseReference(image)
	if err != nil {
		return image
	}
	return ref.Context().Digest(digest).Name()
}
