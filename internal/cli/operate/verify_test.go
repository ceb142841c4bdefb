package operate_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
	"lockstep.run/lockstep/test/clitest"
	"lockstep.run/lockstep/test/clustertest"
	"lockstep.run/lockstep/test/imagetest"
	"lockstep.run/lockstep/test/require"
	"lockstep.run/lockstep/test/signed"
)

func writeFile(t *testing.T, name string, data []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(file, data, 0o600))
	return file
}

// An image is verified only by the key that signed it, and only as long as the tag leads to it.
func TestVerify(t *testing.T) {
	t.Parallel()
	ref := imagetest.ServeRegistry(t) + "/team/shop:v1"
	digest := imagetest.PushRandom(t, ref)
	own, other := signed.NewPair(t), signed.NewPair(t)
	public, stranger := writeFile(t, "release.pub", own.Public), writeFile(t, "other.pub", other.Public)

	unsigned := clitest.Invoke(t, "", "verify", ref, "--key", public)
	if unsigned.Code != 1 || !strings.HasPrefix(unsigned.Err, "Error: NoSignature: the image "+ref+" is not verified: the registry has no signature of "+digest) {
		t.Errorf("before: %+v", unsigned)
	}
	own.Sign(t, ref)
	verified := clitest.Invoke(t, "", "verify", ref, "--key", stranger, "--key", public)
	if verified.Code != 0 || !strings.Contains(verified.Out, "digest  "+digest) || !strings.Contains(verified.Out, "Signed by the authority "+public) {
		t.Errorf("verify: %+v", verified)
	}
	wrong := clitest.Invoke(t, "", "verify", ref, "--key", stranger)
	if wrong.Code != 1 || !strings.Contains(wrong.Err, "SignatureInvalid: ") {
		t.Errorf("by another key: %+v", wrong)
	}
	imagetest.PushRandom(t, ref)
	moved := clitest.Invoke(t, "", "verify", ref, "--key", public)
	if moved.Code != 1 || !strings.Contains(moved.Err, "NoSignature: ") {
		t.Errorf("after the tag moved: %+v", moved)
	}
	if byDigest := clitest.Invoke(t, "", "verify", strings.TrimSuffix(ref, ":v1")+"@"+digest, "--key", public); byDigest.Code != 0 {
		t.Errorf("by digest: %+v", byDigest)
	}
}

func TestVerifyKeyless(t *testing.T) {
	t.Parallel()
	ref := imagetest.ServeRegistry(t) + "/team/shop:v1"
	digest := imagetest.PushRandom(t, ref)
	virtual := signed.NewSigstore(t)
	parsed, err := name.ParseReference(ref, name.Insecure)
	require.NoError(t, err)
	signed.Attach(t, parsed.Context(), digest, virtual.Bundle(digest, imagepolicy.PredicateType, signed.Subject, nil))
	root := writeFile(t, "trusted_root.json", virtual.Root())
	verify := func(subject string, more ...string) clitest.Result {
		return clitest.Invoke(t, "", append([]string{"verify", ref, "--certificate-identity", subject, "--certificate-oidc-issuer", signed.Issuer}, more...)...)
	}
	if good := verify(signed.Subject, "--trusted-root", root); good.Code != 0 || !strings.Contains(good.Out, "as "+signed.Subject+" ("+signed.Issuer+")") {
		t.Errorf("%+v", good)
	}
	if foreign := verify("eve@example.com", "--trusted-root", root); foreign.Code != 1 || !strings.Contains(foreign.Err, "IdentityMismatch: ") {
		t.Errorf("another identity: %+v", foreign)
	}
	if got := clitest.Invoke(t, "", "verify", ref, "--certificate-identity", signed.Subject, "--certificate-oidc-issuer", "https://accounts.example.org", "--trusted-root", root); got.Code != 1 || !strings.Contains(got.Err, "IdentityMismatch: ") {
		t.Errorf("another issuer: %+v", got)
	}
	policy := &corev1alpha1.ImageConfig{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}
	policy.Spec.MatchImages = []corev1alpha1.ImageMatch{{Prefix: strings.TrimSuffix(ref, "/shop:v1")}}
	policy.Spec.Verification = &corev1alpha1.ImageVerification{Authorities: []corev1alpha1.ImageAuthority{{Name: "release", Keyless: &corev1alpha1.ImageAuthorityKeyless{
		Identities: []corev1alpha1.ImageIdentity{{Issuer: signed.Issuer}}, TrustedRootRef: corev1alpha1.ImageKeyRef{Name: "root", Key: "trusted_root.json"},
	}}}}
	roots := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: corev1alpha1.DefaultNamespace, Name: "root"}, Data: map[string]string{"trusted_root.json": string(virtual.Root())}}
	for subject, want := range map[string]string{signed.Subject: "Signed by the authority release of the ImageConfig acme as " + signed.Subject, "eve@example.com": "IdentityMismatch: "} {
		policy.Spec.Verification.Authorities[0].Keyless.Identities[0].Subject = subject
		if got := clitest.InvokeOn(t, clustertest.DialTo(clustertest.FakeCluster(t, policy, roots)), "", "verify", ref); !strings.Contains(got.Out+got.Err, want) {
			t.Errorf("an ImageConfig of %s: %+v", subject, got)
		}
	}
	if without := verify(signed.Subject); without.Code != 1 || !strings.Contains(without.Err, "add --trusted-root FILE") {
		t.Errorf("without a root: %+v", without)
	}
}

// Without flags, the cluster's ImageConfigs decide which signature an image needs, and its
// registry.
func TestVerifyByImageConfigs(t *testing.T) {
	t.Parallel()
	host, own := imagetest.ServeRegistry(t), signed.NewPair(t)
	imagetest.PushRandom(t, host+"/team/shop:v1")
	digest := own.Sign(t, host+"/team/shop:v1")
	config, keys := clustertest.Acme(host), clustertest.AcmeKeys(own.Public)
	dial := clustertest.DialTo(clustertest.FakeCluster(t, config, keys))
	const ref = "origin.example.com/acme/shop:v1"
	good := clitest.InvokeOn(t, dial, "", "verify", ref)
	if good.Code != 0 || !strings.Contains(good.Out, "digest  "+digest) || !strings.Contains(good.Out, "Signed by the authority release of the ImageConfig acme.") {
		t.Errorf("%+v", good)
	}
	if other := clitest.InvokeOn(t, dial, "", "verify", "ghcr.io/acme/shop:v1"); other.Code != 1 || !strings.Contains(other.Err, "no ImageConfig of the cluster verifies ghcr.io/acme/shop:v1") {
		t.Errorf("another image: %+v", other)
	}
	config.Spec.Verification.Images = []corev1alpha1.VerifiedImages{corev1alpha1.VerifiedImagesRepository}
	if got := clitest.InvokeOn(t, clustertest.DialTo(clustertest.FakeCluster(t, config, keys)), "", "verify", ref); got.Code != 0 || !strings.Contains(got.Out, "Signed by the authority release") {
		t.Errorf("as a repository: %+v", got)
	}
	// An image is verified for each use: success as a package does not satisfy another ImageConfig
	// about repositories.
	config.Spec.Verification.Images = []corev1alpha1.VerifiedImages{corev1alpha1.VerifiedImagesPackage}
	strict, other := config.DeepCopy(), signed.NewPair(t)
	strict.Name, strict.Spec.Rewrite = "strict", nil
	strict.Spec.Verification.Images = []corev1alpha1.VerifiedImages{corev1alpha1.VerifiedImagesRepository}
	strict.Spec.Verification.Authorities[0].Key.SecretRef.Key = "other.pub"
	for key, want := range map[string]string{
		string(own.Public):   "  Signed by the authority release of the ImageConfig acme.\n  Signed by the authority release of the ImageConfig strict.\n",
		string(other.Public): "SignatureInvalid: ",
	} {
		keys.Data["other.pub"] = []byte(key)
		got := clitest.InvokeOn(t, clustertest.DialTo(clustertest.FakeCluster(t, config, strict, keys)), "", "verify", ref)
		if !strings.Contains(got.Out+got.Err, want) || (got.Code == 0) != (key == string(own.Public)) {
			t.Errorf("as a package and as a repository: %+v", got)
		}
	}
	gone := clitest.InvokeOn(t, clustertest.DialTo(clustertest.FakeCluster(t, config)), "", "verify", ref)
	if gone.Code != 1 || !strings.Contains(gone.Err, "TrustRootInvalid: ") || !strings.Contains(gone.Err, "there is no Secret package-operator-system/keys") {
		t.Errorf("without the key: %+v", gone)
	}
}
