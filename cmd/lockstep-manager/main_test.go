package main

import (
	"crypto/x509"
	"os"
	"os/exec"
	"testing"
)

// Without certificates on disk, as in the image, those in the binary verify public registries.
func TestRootCertificates(t *testing.T) {
	const inside = "LOCKSTEP_TEST_WITHOUT_CERTIFICATES"
	if os.Getenv(inside) == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRootCertificates$")
		cmd.Env = append(os.Environ(), inside+"=1", "SSL_CERT_FILE=/nonexistent", "SSL_CERT_DIR=/nonexistent")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	roots, err := x509.SystemCertPool()
	if err != nil || roots.Equal(x509.NewCertPool()) {
		t.Fatalf("there are no root certificates: %v", err)
	}
}
