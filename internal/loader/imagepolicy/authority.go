package imagepolicy

import (
	"crypto/rsa"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/limits/regexcost"
)

// Authority is a key, or a list of certificate identities, whose signature suffices.
type Authority struct {
	Name string
	// problem is why it is unusable, or empty.
	problem string
	// source identifies the input that it was made from.
	source string

	// material is the public key or the trusted root.
	material root.TrustedMaterial
	// notBefore and notAfter bound the validity of a key; zero means unbounded.
	notBefore, notAfter time.Time
	// keyless is nil for a key.
	keyless *keyless
}

// keyless is the part of an Authority that certificates need.
type keyless struct {
	identities verify.CertificateIdentities
	// ignoreLog means that a signature needs no entry in a transparency log.
	ignoreLog bool
}

// stamp returns a time for messages and keys, or an empty text for zero.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// valid reports whether a key is valid at a time. The validity of certificates depends on each
// signature.
func (a *Authority) valid(now time.Time) bool {
	return !now.Before(a.notBefore) && (a.notAfter.IsZero() || now.Before(a.notAfter))
}

// turns returns when the key next becomes valid or expires after a time; zero means never.
func (a *Authority) turns(now time.Time) time.Time {
	for _, t := range []time.Time{a.notBefore, a.notAfter} {
		if t.After(now) {
			return t
		}
	}
	return time.Time{}
}

// Unusable returns an authority whose key or trusted root is unreadable.
func Unusable(name, problem string) Authority { return Authority{Name: name, problem: problem} }

// hashOf returns a hash that identifies its parts. JSON keeps their borders apart.
func hashOf(parts ...any) string {
	text, _ := json.Marshal(parts) // strings and bytes can always be encoded
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Key returns the authority of a public key in PEM that is valid from notBefore until notAfter;
// zero means unbounded.
func Key(name string, publicKey []byte, notBefore, notAfter time.Time) Authority {
	a := Authority{Name: name, source: hashOf("key", publicKey), notBefore: notBefore, notAfter: notAfter}
	if err := a.readKey(publicKey); err != nil {
		a.problem = err.Error()
	}
	return a
}

// readKey reads a public key. Its errors do not quote the text, which can be a private key by
// mistake.
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
		return errors.New("the PEM text is not a public key: write the one of the key pair (cosign.pub), neither the private key nor a certificate")
	}

	if key, ok := public.(*rsa.PublicKey); ok && (key.N.BitLen() < limits.RSABitsMin || key.N.BitLen() > limits.RSABitsMax) {
		return fmt.Errorf("the RSA key has %d bits; write one with %d to %d", key.N.BitLen(), limits.RSABitsMin, limits.RSABitsMax)
	}
	// For ECDSA it uses the hash of the key's curve, like all current clients.
	verifier, err := signature.LoadDefaultVerifier(public)
	if err != nil {
		return errors.New("the public key is of another kind than ECDSA, RSA and Ed25519")
	}

	// The key has no period here. Check compares the period itself, to report an expired key as
	// such.
	a.material = root.NewTrustedPublicKeyMaterial(func(string) (root.TimeConstrainedVerifier, error) {
		return root.NewExpiringKey(verifier, time.Time{}, time.Time{}), nil
	})
	return nil
}

// Identity is the identity of a certificate and its issuer. One of each pair is set. Expressions
// match whole values.
type Identity struct {
	Issuer, IssuerRegExp   string
	Subject, SubjectRegExp string
}

// Keyless returns the authority of certificate identities. trustedRoot has their certificate
// authorities, in the form of Sigstore's trusted_root.json. Unless ignoreLog is set, a signature
// needs an entry in a transparency log of that root.
func Keyless(name string, identities []Identity, trustedRoot []byte, ignoreLog bool) Authority {
	a := Authority{Name: name, source: hashOf("keyless", identities, trustedRoot, ignoreLog), keyless: &keyless{ignoreLog: ignoreLog}}
	if err := errors.Join(a.keyless.readIdentities(identities), a.readRoot(trustedRoot)); err != nil {
		a.problem = err.Error()
	}
	return a
}

// readIdentities compiles the identities. Expressions are bounded by the length of the values that
// they are matched with.
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

// whole makes an expression match whole values. If it matched a part, an attacker's value could
// match as well.
func whole(expression string) string {
	if expression == "" {
		return ""
	}
	if _, err := regexp.Compile(expression); err != nil {
		return expression
	}
	return `\A(?:` + expression + `)\z`
}

// readRoot reads a trusted root, and refuses one that cannot verify any signature.
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
		return errors.New("the trusted root has no transparency log, but signatures need an entry in one (transparencyLog: Required)")
	}

	a.material = trusted
	return nil
}
