package outbound

import (
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"testing"

	"lockstep.run/lockstep/test/require"
)

// inside is set in the process without certificates on disk.
const inside = "LOCKSTEP_TEST_WITHOUT_CERTIFICATES"

// A program that finds no certificates on disk, as in the image, trusts the ones in its binary and
// no others, and an authority can be added.
func TestRootCertificates(t *testing.T) {
	if os.Getenv(inside) == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), inside+"=1", "SSL_CERT_FILE=/nonexistent", "SSL_CERT_DIR=/nonexistent")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}

	roots, err := x509.SystemCertPool()
	require.NoError(t, err)
	if roots.Equal(x509.NewCertPool()) {
		t.Fatal("there are no root certificates in the binary")
	}

	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	client := server.Client()
	config := client.Transport.(*http.Transport).TLSClientConfig
	config.RootCAs = nil
	if _, err := client.Get(server.URL); err == nil {
		t.Fatal("a server of an unknown authority is trusted")
	}

	roots.AddCert(server.Certificate())
	config.RootCAs = roots
	res, err := client.Get(server.URL)
	require.NoError(t, err)
	_ = res.Body.Close()
}
