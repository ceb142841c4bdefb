package cli

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
)

// Registries on this machine need no flag, as with docker and crane; all others do.
func TestTrusts(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"localhost": true, "localhost:5000": true, "127.0.0.1:5000": true, "127.9.9.9": true, "[::1]:5000": true, "[::1]": true,
		"registry.example.com": false, "10.0.0.1:5000": false, "localhost.example.com": false, "127.0.0.1.example.com:5000": false, "[fe80::1]:5000": false, "": false,
	} {
		if got := (&registryFlags{}).trusts(host); got != want {
			t.Errorf("%q: %t", host, got)
		}
		if (&registryFlags{caFile: "ca.pem"}).trusts(host) {
			t.Errorf("%q: certificates were given, and it is not checked by them", host)
		}
		if got := (&registryFlags{cas: []string{"localhost:5000=ca.pem"}, all: true}).trusts(host); got == (host == "localhost:5000") {
			t.Errorf("%q, with certificates for localhost:5000: %t", host, got)
		}
		if !(&registryFlags{all: true}).trusts(host) {
			t.Errorf("%q: all are trusted", host)
		}
	}
}

// authority writes a certificate authority that has signed nothing.
func authority(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "authority.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
