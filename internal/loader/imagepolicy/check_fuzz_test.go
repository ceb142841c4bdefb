package imagepolicy_test

import (
	"testing"
	"time"

	"lockstep.run/lockstep/internal/loader/imagepolicy"
	"lockstep.run/lockstep/test/signed"
)

// FuzzCheck checks that any content next to an image in a registry is refused, unless an authority
// signed this image.
func FuzzCheck(f *testing.F) {
	own, virtual := signed.NewPair(f), signed.NewSigstore(f)
	authorities := []imagepolicy.Authority{signed.NewPair(f).Authority(), virtual.Authority(false), virtual.Authority(true)}
	payload, layer := own.Simple(f, image)
	f.Add(own.Bundle(f, image), layer["dev.cosignproject.cosign/signature"], "", "")
	f.Add(virtual.Bundle(image, imagepolicy.PredicateType, "eve@example.com", nil), "", "", "")
	_, certified := virtual.Simple(image, "eve@example.com")
	f.Add(payload, certified["dev.cosignproject.cosign/signature"], certified["dev.sigstore.cosign/certificate"], certified["dev.sigstore.cosign/bundle"])
	v := &imagepolicy.Verification{Authorities: authorities}
	f.Fuzz(func(t *testing.T, data []byte, signature, certificate, entry string) {
		check, refusal := v.Check(image, time.Now())
		if refusal != nil {
			t.Fatal(refusal)
		}
		annotations := map[string]string{
			"dev.cosignproject.cosign/signature": signature, "dev.sigstore.cosign/certificate": certificate, "dev.sigstore.cosign/bundle": entry,
		}
		if check.Bundle(data) || check.Simple(data, annotations) || check.Simple(payload, annotations) {
			t.Fatal("accepted")
		}
		if _, refusal := check.Result(0); refusal == nil || refusal.Message == "" {
			t.Fatal("refused without a reason")
		}
	})
}
