package registry

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

// These are rows B of the checklist of bad input (docs/development.md), except those in other tests
// of this package.
func TestBadInput(t *testing.T) {
	t.Parallel()
	challenge := func(realm string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="%s",service="x"`, realm))
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
	}

	onBlobs := func(answer func(http.ResponseWriter, *http.Request)) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if kindOf(r.URL.Path) != "blobs" {
				return false
			}
			answer(w, r)
			return true
		}
	}

	for _, test := range []struct {
		name string
		hook func(http.ResponseWriter, *http.Request) bool
		want Reason
		text string
	}{
		{"B1 digest in the header differs from the body", func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodGet || kindOf(r.URL.Path) != "manifests" {
				return false
			}
			w.Header().Set("Docker-Content-Digest", "sha256:"+strings.Repeat("0", 64))
			_, _ = io.WriteString(w, `{"schemaVersion":2,"layers":[]}`)
			return true
		}, ReasonDigestMismatch, "the content has another digest than sha256:"},
		{"B3 token realm at the metadata service", challenge("https://169.254.169.254/token"), "", "169.254.169.254"},
		{"B3 token realm at a link-local address", challenge("https://[fe80::1]/token"), "", "fe80::1"},
		{"B3 token realm on loopback", challenge("https://127.0.0.2:1/token"), "", "127.0.0.2"},
		{"B3 token realm on a private address", challenge("http://10.255.255.1/token"), "", "10.255.255.1"},
		{"B3 token realm in a file", challenge("file:///etc/passwd"), "", "scheme"},
		{"B3 no token realm", challenge(""), "", ""},
		{"B5 206 with less than all", onBlobs(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Range", "bytes 0-0/10000")
			w.WriteHeader(http.StatusPartialContent)
			_, _ = io.WriteString(w, "x")
		}), "", ""},
		{"B5 Retry-After of a year", onBlobs(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "31536000")
			w.WriteHeader(http.StatusTooManyRequests)
		}), "", ""},
		{"B5 5xx", onBlobs(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }), "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, httptest.NewServer)
			ref, _ := s.push(t, imageOf(t, testFiles))
			s.set(test.hook)
			_, err := newPuller(t, Options{InsecureRegistries: []string{s.host}}).Pull(context.Background(), ref)
			reason, _ := reasonOf(err)
			if reason == "" || test.want != "" && reason != test.want || !strings.Contains(err.Error(), test.text) {
				t.Errorf("got %v (%s), want %q %q", err, reason, test.want, test.text)
			}
		})
	}

	t.Run("B3 token realm by plain HTTP", func(t *testing.T) {
		t.Parallel()
		asked := false
		elsewhere := serve(t, httptest.NewServer)
		elsewhere.set(func(http.ResponseWriter, *http.Request) bool { asked = true; return false })
		s := serve(t, httptest.NewTLSServer)
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		s.set(challenge("http://" + elsewhere.host + "/token"))
		bundle := writeBundle(t, s.Certificate().Raw)
		_, err := newPuller(t, Options{CABundle: bundle}).Pull(context.Background(), s.host+"/team/shop:v1")
		if reason, _ := reasonOf(err); reason == "" || asked {
			t.Error(err, asked)
		}
	})

	t.Run("B5 certificate that has expired", func(t *testing.T) {
		t.Parallel()
		certificate, raw := expired(t)
		s := serve(t, func(h http.Handler) *httptest.Server {
			s := httptest.NewUnstartedServer(h)
			s.Config.ErrorLog = log.New(io.Discard, "", 0)
			s.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
			s.StartTLS()
			return s
		})
		_, err := newPuller(t, Options{CABundle: writeBundle(t, raw)}).Pull(context.Background(), s.host+"/team/shop:v1")
		if reason, _ := reasonOf(err); reason != ReasonUnreachable || !strings.Contains(err.Error(), "expired") {
			t.Error(err)
		}
	})
}

func writeBundle(t *testing.T, certificate []byte) string {
	t.Helper()
	bundle := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(bundle, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}), 0o600))
	return bundle
}

func expired(t *testing.T) (tls.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(-24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, raw
}

// Row B6: a text that is not a reference is refused before any request. Otherwise it names the host
// of the request.
func TestBadReferences(t *testing.T) {
	t.Parallel()
	hex := strings.Repeat("a", 64)
	p := newPuller(t, Options{})
	for _, test := range []struct{ name, ref, host string }{
		{"B6 userinfo", "user:geheim@example.com/x", ""},
		{"B6 userinfo without a password", "user@example.com/x", ""},
		{"B6 uppercase", "example.com/Shop", ""},
		{"B6 short digest", "example.com/x@sha256:abcd", ""},
		{"B6 other algorithm", "example.com/x@md5:" + hex[:32], ""},
		{"B6 tag and digest: the digest counts", "example.com/x:v1@sha256:" + hex, "example.com"},
		{"B6 internationalised host", "exämple.com/x", ""},
		{"B6 host in Cyrillic", "ехample.com/x", ""},
		{"B6 port 0", "example.com:0/x", ""},
		{"B6 port with a leading zero", "example.com:0443/x", ""},
		{"B6 port too large", "example.com:99999999/x", ""},
		{"B6 localhost", "localhost/x", "localhost"},
		{"B6 IPv6 literal", "[::1]:5000/x", "[::1]:5000"},
		{"B6 4 KiB", "example.com/" + strings.Repeat("x", 4<<10), ""},
		{"B6 path that leads out", "example.com/../x", ""},
		{"B6 empty segment", "example.com/a//x", ""},
		{"B6 empty first segment", "example.com//x", ""},
		{"B6 escape sequence", "example.com/\x1b[2Jx", ""},
		{"B6 line end", "example.com/x\n", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			ref, err := p.parse(test.ref)
			if test.host != "" {
				if err != nil || ref.Context().RegistryStr() != test.host {
					t.Errorf("%v: %v", ref, err)
				}
				return
			}
			if reason, _ := reasonOf(err); reason != ReasonInvalidReference || strings.Contains(err.Error(), "geheim") || len(err.Error()) > limits.ReferenceBytes || strings.ContainsAny(err.Error(), "\x1b\n") {
				t.Errorf("%v: %q", ref, err)
			}
		})
	}
}
