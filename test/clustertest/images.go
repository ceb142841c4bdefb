package clustertest

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// Acme rewrites images of origin.example.com to a registry, and requires signatures by the key of a
// Secret.
func Acme(host string) *corev1alpha1.ImageConfig {
	config := &corev1alpha1.ImageConfig{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}
	config.Spec.MatchImages = []corev1alpha1.ImageMatch{{Prefix: "origin.example.com/acme"}}
	config.Spec.Rewrite = &corev1alpha1.ImageRewrite{Prefix: host + "/team"}
	config.Spec.Verification = &corev1alpha1.ImageVerification{Authorities: []corev1alpha1.ImageAuthority{
		{Name: "release", Key: &corev1alpha1.ImageAuthorityKey{SecretRef: &corev1alpha1.ImageKeyRef{Name: "keys", Key: "cosign.pub"}}},
	}}
	return config
}

// AcmeKeys is the Secret that Acme names.
func AcmeKeys(public []byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: corev1alpha1.DefaultNamespace, Name: "keys"}, Data: map[string][]byte{"cosign.pub": public}}
}
