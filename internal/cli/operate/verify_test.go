package operate_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/sigstore/sigstore/pkg/cryptoutils"

	"lockstep.run/lockstep/internal/cli/clitest"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
	"lockstep.run/lockstep/internal/testing/signed"
)

func writeFile(t *testing.T, name string, data []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// What sign signs, verify accepts by that key alone, while the tag leads to it.
func TestSignAndVerify(t *testing.T) {
	t.Parallel()
	ref := clitest.ServeRegistry(t) + "/team/shop:v1"
	digest := clitest.PushRandom(t, ref)
	own, other := signed.NewPair(t), signed.NewPair(t)
	private, public, stranger := writeFile(t, "release.key", own.Private), writeFile(t, "release.pub", own.Public), writeFile(t, "other.pub", other.Public)

	unsigned := clitest.Invoke(t, "", "verify", ref, "--key", public)
	if unsigned.Code != 1 || !strings.HasPrefix(unsigned.Err, "Error: NoSignature: the image "+ref+" is not verified: the registry has no signature of "+digest) {
		t.Errorf("before: %+v", unsigned)
	}
	done := clitest.Invoke(t, "", "sign", ref, "--key", private)
	if done.Code != 0 || !strings.Contains(done.Out, "digest     "+digest) {
		t.Fatalf("sign: %+v", done)
	}
	verified := clitest.Invoke(t, "", "verify", ref, "--key", stranger, "--key", public)
	if verified.Code != 0 || !strings.Contains(verified.Out, "digest  "+digest) || !strings.Contains(verified.Out, "Signed by the authority "+public) {
		t.Errorf("verify: %+v", verified)
	}
	wrong := clitest.Invoke(t, "", "verify", ref, "--key", stranger)
	if wrong.Code != 1 || !strings.Contains(wrong.Err, "SignatureInvalid: ") {
		t.Errorf("by another key: %+v", wrong)
	}
	clitest.PushRandom(t, ref)
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
	ref := clitest.ServeRegistry(t) + "/team/shop:v1"
	digest := clitest.PushRandom(t, ref)
	virtual := signed.NewSigstore(t)
	parsed, err := name.ParseReference(ref, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
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
	if without := verify(signed.Subject); without.Code != 1 || !strings.Contains(without.Err, "add --trusted-root FILE") {
		t.Errorf("without a root: %+v", without)
	}
}

func TestSignRefusals(t *testing.T) {
	t.Parallel()
	ref := clitest.ServeRegistry(t) + "/team/shop:v1"
	own := signed.NewPair(t)
	private := writeFile(t, "release.key", own.Private)
	encrypted, _, err := cryptoutils.GeneratePEMEncodedECDSAKeyPair(signed.Curve, func(bool) ([]byte, error) { return []byte("secret"), nil })
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no key":         {[]string{"sign", ref}, "add --key FILE"},
		"no file":        {[]string{"sign", ref, "--key", private + "s"}, "read the key: "},
		"a public key":   {[]string{"sign", ref, "--key", writeFile(t, "release.pub", own.Public)}, "it is no private key in PEM form"},
		"encrypted":      {[]string{"sign", ref, "--key", writeFile(t, "encrypted.key", encrypted)}, "it is encrypted: set COSIGN_PASSWORD"},
		"no image":       {[]string{"sign", ref, "--key", private}, "sign " + ref},
		"no reference":   {[]string{"sign", "A B", "--key", private}, "invalid image"},
		"verify nothing": {[]string{"verify", ref}, "it is not said whose signature"},
	} {
		if got := clitest.Invoke(t, "", tc.args...); got.Code != 1 || !strings.Contains(got.Err, tc.want) {
			t.Errorf("%s: %+v, want …%s", name, got, tc.want)
		}
	}
}
