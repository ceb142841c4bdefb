package imagepolicy

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/sigstore/sigstore-go/pkg/fulcio/certificate"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/limits/regexcost"
)

// Authority is a key, or identities that certificates are issued to, whose signature suffices.
type Authority struct {
	Name string
	// problem is why it cannot be used; else it is empty.
	problem string
	// source identifies what it was made of.
	source string

	// material are the public key or the trusted root.
	material root.TrustedMaterial
	// notBefore and notAfter are when a key is valid; zero for always.
	notBefore, notAfter time.Time
	// keyless is nil for a key.
	keyless *keyless
}

type keyless struct {
	identities verify.CertificateIdentities
	// ignoreLog means that a signature needs no entry in a transparency log.
	ignoreLog bool
}

// identity identifies the authority by what it was made of.
func (a *Authority) identity() string {
	return fmt.Sprintf("%s %s %s", a.source, stamp(a.notBefore), stamp(a.notAfter))
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// valid reports whether a key is valid at a time. Those of certificates are a matter of each signature.
func (a *Authority) valid(now time.Time) bool {
	return !now.Before(a.notBefore) && (a.notAfter.IsZero() || now.Before(a.notAfter))
}

// turns returns when the key becomes valid or expires next after a time; zero for never.
func (a *Authority) turns(now time.Time) time.Time {
	for _, t := range []time.Time{a.notBefore, a.notAfter} {
		if t.After(now) {
			return t
		}
	}
	return time.Time{}
}

// Unusable returns an authority whose key or trusted root cannot be read.
func Unusable(name, problem string) Authority { return Authority{Name: name, problem: problem} }

func hashOf(parts ...any) string {
	text, _ := json.Marshal(parts) // of text and bytes alone
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Key returns the authority of a public key in PEM, which is valid from notBefore until notAfter; zero for always.
func Key(name string, publicKey []byte, notBefore, notAfter time.Time) Authority {
	a := Authority{Name: name, source: hashOf("key", publicKey), notBefore: notBefore, notAfter: notAfter}
	if err := a.readKey(publicKey); err != nil {
		a.problem = err.Error()
	}
	return a
}

func (a *Authority) readKey(text []byte) error {
	if len(text) > limits.PublicKeyBytes {
		return fmt.Errorf("the public key has %d bytes; the limit is %d", len(text), limits.PublicKeyBytes)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return errors.New("the public key is not in PEM form, as cosign.pub is")
	}
	public, err := cryptoutils.UnmarshalPEMToPublicKey(text)
	if err != nil {
		return errors.New("the PEM text is no public key: write the one of the key pair (cosign.pub), neither the private key nor a certificate")
	}
	verifier, err := verifierOf(public)
	if err != nil {
		return err
	}
	a.material = root.NewTrustedPublicKeyMaterial(func(string) (root.TimeConstrainedVerifier, error) {
		return root.NewExpiringKey(verifier, time.Time{}, time.Time{}), nil
	})
	return nil
}

// verifierOf returns what verifies by a key: for ECDSA with the hash of its curve, as all clients sign by now.
func verifierOf(public crypto.PublicKey) (signature.Verifier, error) {
	if key, ok := public.(*rsa.PublicKey); ok && (key.N.BitLen() < limits.RSABitsMin || key.N.BitLen() > limits.RSABitsMax) {
		return nil, fmt.Errorf("the RSA key has %d bits; write one with %d to %d", key.N.BitLen(), limits.RSABitsMin, limits.RSABitsMax)
	}
	verifier, err := signature.LoadDefaultVerifier(public)
	if err != nil {
		return nil, errors.New("the public key is of another kind than ECDSA, RSA and Ed25519")
	}
	return verifier, nil
}

// Identity is who a certificate is issued to, and by whom that was attested. Of each pair one is set. Expressions match whole values.
type Identity struct {
	Issuer, IssuerRegExp   string
	Subject, SubjectRegExp string
}

// Keyless returns the authority of identities to which the certificate authorities of a trusted root, in the form of Sigstore's
// trusted_root.json, issue certificates. Without ignoreLog a signature needs an entry in a transparency log of that root.
func Keyless(name string, identities []Identity, trustedRoot []byte, ignoreLog bool) Authority {
	a := Authority{Name: name, source: hashOf("keyless", identities, trustedRoot, ignoreLog), keyless: &keyless{ignoreLog: ignoreLog}}
	if err := errors.Join(a.keyless.readIdentities(identities), a.readRoot(trustedRoot)); err != nil {
		a.problem = err.Error()
	}
	return a
}

func (k *keyless) readIdentities(identities []Identity) error {
	if len(identities) == 0 {
		return errors.New("it names no identity")
	}
	for _, i := range identities {
		for _, expression := range []string{i.IssuerRegExp, i.SubjectRegExp} {
			if err := regexcost.Check(expression, limits.IdentityBytes); err != nil {
				return err
			}
		}
		identity, err := verify.NewShortCertificateIdentity(i.Issuer, whole(i.IssuerRegExp), i.Subject, whole(i.SubjectRegExp))
		if err != nil {
			return errors.New("an identity lacks issuer and issuerRegExp, or subject and subjectRegExp")
		}
		k.identities = append(k.identities, identity)
	}
	return nil
}

// whole makes an expression match whole values: a part of one would be that of an attacker's, too.
func whole(expression string) string {
	if expression == "" {
		return ""
	}
	if _, err := regexp.Compile(expression); err != nil {
		return expression
	}
	return `\A(?:` + expression + `)\z`
}

func (a *Authority) readRoot(text []byte) error {
	if len(text) > limits.TrustedRootBytes {
		return fmt.Errorf("the trusted root has %d bytes; the limit is %d", len(text), limits.TrustedRootBytes)
	}
	trusted, err := root.NewTrustedRootFromJSON(text)
	if err != nil {
		return errors.New("the trusted root cannot be read: write one of the form of Sigstore's trusted_root.json")
	}
	n := len(trusted.FulcioCertificateAuthorities()) + len(trusted.TimestampingAuthorities()) + len(trusted.RekorLogs()) + len(trusted.CTLogs())
	switch {
	case n > limits.TrustedRootEntries:
		return fmt.Errorf("the trusted root has %d authorities and logs; the limit is %d", n, limits.TrustedRootEntries)
	case len(trusted.FulcioCertificateAuthorities()) == 0:
		return errors.New("the trusted root has no certificate authority")
	case len(trusted.RekorLogs()) == 0 && !a.keyless.ignoreLog:
		return errors.New("the trusted root has no transparency log, in which a signature needs an entry (transparencyLog: Required)")
	}
	a.material = trusted
	return nil
}

// names reports whether an identity of a certificate is one of the authority's.
func (k *keyless) names(who certificate.Summary) bool {
	_, err := k.identities.Verify(who)
	return err == nil
}
