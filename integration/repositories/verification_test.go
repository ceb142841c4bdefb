package repositories_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
	"lockstep.run/lockstep/test/signed"
)

func verifiedBy(key signed.Pair) *corev1alpha1.ImageVerification {
	return &corev1alpha1.ImageVerification{Authorities: []corev1alpha1.ImageAuthority{{Name: "release", Key: &corev1alpha1.ImageAuthorityKey{PEM: string(key.Public)}}}}
}

func sign(t *testing.T, byDigest string, key signed.Pair) {
	t.Helper()
	ref, err := name.NewDigest(byDigest, name.Insecure)
	require.NoError(t, err)
	signed.Attach(t, ref.Context(), ref.DigestStr(), key.Bundle(t, ref.DigestStr()))
}

// New content of an image without a signature is not offered; known content stays if its own
// signature is valid. If the key changes, the content is verified again, and withdrawn if the key
// does not match.
func TestVerification(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	own, other := signed.NewPair(t), signed.NewPair(t)
	config := &corev1alpha1.ImageConfig{ObjectMeta: metav1.ObjectMeta{Name: "repositories-verification"}}
	config.Spec.MatchImages = []corev1alpha1.ImageMatch{{Prefix: "origin.example.com/signed"}}
	config.Spec.Rewrite = &corev1alpha1.ImageRewrite{Prefix: env.Registry() + "/signed"}
	config.Spec.Verification = verifiedBy(own)
	env.Create(t, config)
	t.Cleanup(func() { _ = env.Client.Delete(t.Context(), config) })
	await(t, config, "to count", func(c *corev1alpha1.ImageConfig) error {
		if !meta.IsStatusConditionTrue(c.Status.Conditions, corev1alpha1.ConditionReady) || !slices.Equal(c.Spec.Verification.Images, []corev1alpha1.VerifiedImages{"Package", "Repository"}) {
			return fmt.Errorf("%+v, %v", c.Status.Conditions, c.Spec.Verification.Images)
		}
		return nil
	})
	verified := func(status metav1.ConditionStatus, reason, text, ready string) func(*corev1alpha1.PackageRepository) error {
		return func(r *corev1alpha1.PackageRepository) error {
			is, of := meta.FindStatusCondition(r.Status.Conditions, corev1alpha1.ConditionVerified), meta.FindStatusCondition(r.Status.Conditions, corev1alpha1.ConditionReady)
			if is == nil || is.Status != status || is.Reason != reason || !strings.Contains(is.Message, text) || of == nil || of.Reason != ready {
				return fmt.Errorf("Verified %+v, Ready %+v", is, of)
			}
			return nil
		}
	}

	first := push(t, "signed:v1", "shop@1.0.0")
	r := newRepository(ns, "stable", corev1alpha1.RepositorySource{Image: &corev1alpha1.RepositoryImageSource{Ref: "origin.example.com/signed:v1"}})
	env.Create(t, r)
	await(t, r, "to be refused", verified(metav1.ConditionFalse, "NoSignature", "the image origin.example.com/signed:v1 is not verified", corev1alpha1.ReasonImageNotVerified))
	awaitOffers(t, ns)
	sign(t, first, own)
	retry(t, r, "signed")
	await(t, r, "to be verified", verified(metav1.ConditionTrue, corev1alpha1.ReasonVerified, "the authority release of the ImageConfig repositories-verification", corev1alpha1.ReasonFetched))
	awaitOffers(t, ns, "shop@1.0.0=stable")

	second := push(t, "signed:v1", "shop@2.0.0")
	retry(t, r, "moved")
	await(t, r, "to be refused", verified(metav1.ConditionFalse, "NoSignature", "no signature of sha256:"+second[strings.LastIndex(second, ":")+1:], corev1alpha1.ReasonImageNotVerified))
	awaitOffers(t, ns, "shop@1.0.0=stable")
	sign(t, second, own)
	retry(t, r, "signed again")
	awaitOffers(t, ns, "shop@2.0.0=stable")

	harness.Edit(t, env, config, func(c *corev1alpha1.ImageConfig) { c.Spec.Verification = verifiedBy(other) })
	await(t, r, "to be looked at again", verified(metav1.ConditionFalse, "SignatureInvalid", "the authority release does not accept it", corev1alpha1.ReasonImageNotVerified))
	awaitOffers(t, ns)
	harness.Edit(t, env, config, func(c *corev1alpha1.ImageConfig) { c.Spec.Verification = nil })
	await(t, r, "to need no signature", func(r *corev1alpha1.PackageRepository) error {
		if c := meta.FindStatusCondition(r.Status.Conditions, corev1alpha1.ConditionVerified); c != nil || !meta.IsStatusConditionTrue(r.Status.Conditions, corev1alpha1.ConditionReady) {
			return fmt.Errorf("%+v", r.Status.Conditions)
		}
		return nil
	})
	awaitOffers(t, ns, "shop@2.0.0=stable")
}
