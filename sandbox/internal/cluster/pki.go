package cluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"
)

// certificateLifetime outlives any sandbox.
const certificateLifetime = 365 * 24 * time.Hour

// pki is the certificate authority of one sandbox.
type pki struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte // the authority's certificate
}

// keyPair is a PEM-encoded certificate with its key.
type keyPair struct{ cert, key []byte }

func newPKI(sandbox string) (*pki, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generating the authority's key: %w", err)
	}

	template, err := certificate(pkix.Name{CommonName: "lockstep-sandbox-" + sandbox})
	if err != nil {
		return nil, err
	}

	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("signing the authority's certificate: %w", err)
	}

	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("reading the authority's certificate: %w", err)
	}

	return &pki{cert: cert, key: key, pem: encodePEM("CERTIFICATE", der)}, nil
}

// client issues a certificate for user, a member of groups.
func (p *pki) client(user string, groups ...string) (keyPair, error) {
	template, err := certificate(pkix.Name{CommonName: user, Organization: groups})
	if err != nil {
		return keyPair{}, err
	}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return p.issue(template)
}

// server issues the API server's certificate.
func (p *pki) server() (keyPair, error) {
	template, err := certificate(pkix.Name{CommonName: "kube-apiserver"})
	if err != nil {
		return keyPair{}, err
	}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.DNSNames = []string{
		"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
	}
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 96, 0, 1)}
	return p.issue(template)
}

func (p *pki) issue(template *x509.Certificate) (keyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keyPair{}, fmt.Errorf("generating a key for %s: %w", template.Subject.CommonName, err)
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, p.cert, key.Public(), p.key)
	if err != nil {
		return keyPair{}, fmt.Errorf("signing the certificate of %s: %w", template.Subject.CommonName, err)
	}
	keyPEM, err := encodeKey(key)
	return keyPair{cert: encodePEM("CERTIFICATE", der), key: keyPEM}, err
}

func certificate(subject pkix.Name) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("choosing a serial number: %w", err)
	}
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(certificateLifetime),
	}, nil
}

func encodeKey(key crypto.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding a key: %w", err)
	}
	return encodePEM("PRIVATE KEY", der), nil
}

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// writeIdentities creates the keys and kubeconfigs of every component below the data folder. The
// service account key is separate from the authority's key: API server and controller manager sign
// and verify tokens with it.
func writeIdentities(l layout, sandbox, server string) error {
	authority, err := newPKI(sandbox)
	if err != nil {
		return err
	}

	authorityKey, err := encodeKey(authority.key)
	if err != nil {
		return err
	}

	serving, err := authority.server()
	if err != nil {
		return err
	}

	tokens, err := authority.issueTokenKey()
	if err != nil {
		return err
	}

	files := map[string][]byte{
		l.caFile(): authority.pem, l.caKeyFile(): authorityKey,
		l.servingCert(): serving.cert, l.servingKey(): serving.key,
		l.tokenKey(): tokens.key, l.tokenPublicKey(): tokens.cert,
	}

	for _, id := range identities {
		pair, err := authority.client(id.user, id.groups...)
		if err != nil {
			return err
		}
		files[l.kubeconfig(id.file)] = kubeconfig(sandbox, server, authority.pem, id.user, pair)
	}

	for path, content := range files {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return fmt.Errorf("writing keys: %w", err)
		}
	}

	return nil
}

// issueTokenKey creates the key that signs service account tokens; the pair's
// cert is its public key.
func (p *pki) issueTokenKey() (keyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keyPair{}, fmt.Errorf("generating the key for tokens: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return keyPair{}, fmt.Errorf("encoding the key for tokens: %w", err)
	}
	private, err := encodeKey(key)
	return keyPair{cert: encodePEM("PUBLIC KEY", public), key: private}, err
}
