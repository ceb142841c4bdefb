package sources

import (
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

func TestReference(t *testing.T) {
	t.Parallel()
	const image, digest = "registry.test/shop:v1", "sha256:0123456789012345678901234567890123456789012345678901234567890123"
	const pinned = "registry.test/shop@" + digest
	resolved := &corev1alpha1.ResolvedPackage{Image: image, Digest: digest}
	for name, tc := range map[string]struct {
		image    string
		resolved *corev1alpha1.ResolvedPackage
		policy   corev1alpha1.ImagePullPolicy
		changed  bool
		want     string
	}{
		"a tag keeps its digest":                 {image, resolved, "", false, pinned},
		"until the spec changes":                 {image, resolved, "", true, image},
		"or after any change":                    {image, resolved, corev1alpha1.ImagePullPolicyIfNotPresent, true, pinned},
		"without the registry":                   {image, resolved, corev1alpha1.ImagePullPolicyNever, true, pinned},
		"it is followed if the policy is Follow": {image, resolved, corev1alpha1.ImagePullPolicyAlways, false, image},
		"never unpacked":                         {image, nil, corev1alpha1.ImagePullPolicyIfNotPresent, false, image},
		"another image":                          {image, &corev1alpha1.ResolvedPackage{Image: "x", Digest: digest}, "", false, image},
		"no digest":                              {image, &corev1alpha1.ResolvedPackage{Image: image}, "", false, image},
		"by digest":                              {pinned, &corev1alpha1.ResolvedPackage{Image: pinned, Digest: digest}, "", false, pinned},
		"no reference":                           {"::", &corev1alpha1.ResolvedPackage{Image: "::", Digest: digest}, "", false, "::"},
	} {
		pkg := &corev1alpha1.Package{}
		pkg.Spec.Image, pkg.Spec.ImagePullPolicy, pkg.Status.Resolved = tc.image, tc.policy, tc.resolved
		if got := Reference(pkg, pkg.Spec.Image, tc.changed); got != tc.want {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
}
