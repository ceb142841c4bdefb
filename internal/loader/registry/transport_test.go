package registry

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

func TestTransportSecurity(t *testing.T) {
	t.Parallel()
	plain := serve(t, httptest.NewServer)
	plainRef, _ := plain.push(t, imageOf(t, testFiles))
	encrypted := serve(t, func(h http.Handler) *httptest.Server {
		s := httptest.NewUnstartedServer(h)
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		s.StartTLS()
		return s
	})

	encryptedRef, _ := encrypted.push(t, imageOf(t, testFiles))
	bundle := filepath.Join(t.TempDir(), "ca.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: encrypted.Certificate().Raw}
	require.NoError(t, os.WriteFile(bundle, pem.EncodeToMemory(block), 0o600))
	for _, test := range []struct {
		reason string
		opts   Options
		ref    string
		want   Reason
		text   string
	}{
		{"plain HTTP has to be named, also on loopback", Options{}, plainRef, ReasonInsecure, "name this host by --insecure-registry"},
		{"another port is another host", Options{InsecureRegistries: []string{"127.0.0.1"}}, plainRef, ReasonInsecure, ""},
		{"plain HTTP, named", Options{InsecureRegistries: []string{plain.host}}, plainRef, "", ""},
		{"unknown authority", Options{}, encryptedRef, ReasonUnreachable, "Give its certificate authority: --registry-ca " + encrypted.host + "=FILE."},
		{"known authority", Options{CABundle: bundle}, encryptedRef, "", ""},
		{"unknown authority, named", Options{InsecureRegistries: []string{encrypted.host}}, encryptedRef, "", ""},
	} {
		_, err := newPuller(t, test.opts).Pull(context.Background(), test.ref)
		if reason, _ := reasonOf(err); reason != test.want || err != nil && !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: %v", test.reason, err)
		}
	}
}

func TestProxy(t *testing.T) {
	t.Parallel()
	s := serve(t, httptest.NewServer)
	ref, _ := s.push(t, imageOf(t, testFiles))
	target, _ := url.Parse(s.URL)
	seen := make(chan string, 100)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.URL.Host
		r.URL.Scheme, r.URL.Host, r.RequestURI = "http", target.Host, ""
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer func() { _ = resp.Body.Close() }()
		for k, v := range resp.Header {
			w.Header()[k] = v
		}
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body)
	}))

	t.Cleanup(proxy.Close)
	at, _ := url.Parse(proxy.URL)
	p := newPuller(t, Options{InsecureRegistries: []string{"registry.example"}, Proxy: func(r *http.Request) (*url.URL, error) {
		if r.URL.Scheme == "https" {
			return nil, errors.New("no HTTPS here")
		}
		return at, nil
	}})

	ref = strings.Replace(ref, s.host, "registry.example", 1)
	if _, err := p.Pull(context.Background(), ref); err != nil || <-seen != "registry.example" {
		t.Error(err)
	}
}

// large writes a file that exceeds the limit of certificate authorities.
func large(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "large")
	require.NoError(t, os.WriteFile(file, make([]byte, limits.CertificateBytes+1), 0o600))
	return file
}

func TestNewPullerRefusesBadOptions(t *testing.T) {
	t.Parallel()
	notPEM := filepath.Join(t.TempDir(), "x")
	require.NoError(t, os.WriteFile(notPEM, []byte("x"), 0o600))
	for _, opts := range []Options{
		{CABundle: "/nowhere"}, {CABundle: notPEM}, {InsecureRegistries: []string{"http://x"}}, {InsecureRegistries: []string{""}}, {CacheDir: notPEM},
		{Authorities: Authorities{"a.example": "/nowhere"}}, {Authorities: Authorities{"a.example": notPEM}}, {Authorities: Authorities{"a.example": filepath.Dir(notPEM)}},
		{Authorities: Authorities{"a.example": large(t)}}, {Authorities: Authorities{"a.example": "x"}, InsecureRegistries: []string{"a.example:443"}},
	} {
		if _, err := NewPuller(opts); err == nil {
			t.Errorf("%+v", opts)
		}
	}
}
