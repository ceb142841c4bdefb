package registry

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"lockstep.run/lockstep/test/require"
)

// issue returns a certificate for names and the loopback address, and a file with it as an
// authority.
func issue(t *testing.T, names ...string) (certificate tls.Certificate, file string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: names, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	file = filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), 0o600))
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, file
}

// serveTLS starts a registry with its own authority, and with one image as team/shop:v1.
func serveTLS(t *testing.T, names ...string) (s *server, ca string) {
	t.Helper()
	certificate, ca := issue(t, names...)
	s = serve(t, func(h http.Handler) *httptest.Server {
		s := httptest.NewUnstartedServer(h)
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		s.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
		s.StartTLS()
		return s
	})
	s.push(t, imageOf(t, testFiles))
	return s, ca
}

// tunnels is a proxy that connects to the addresses of hosts.
type tunnels struct {
	url    *url.URL
	mu     sync.Mutex
	hosts  []string
	secret string
}

func (p *tunnels) seen() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := slices.Compact(slices.Clone(p.hosts))
	p.hosts = nil
	return seen
}

func serveTunnels(t *testing.T, secret string, addresses map[string]string) *tunnels {
	t.Helper()
	p := &tunnels{secret: secret}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.hosts = append(p.hosts, r.Host)
		p.mu.Unlock()
		if want := "Basic " + base64.StdEncoding.EncodeToString([]byte("user:"+secret)); secret != "" && r.Header.Get("Proxy-Authorization") != want {
			w.WriteHeader(http.StatusProxyAuthRequired)
			_, _ = io.WriteString(w, r.Header.Get("Proxy-Authorization"))
			return
		}
		out, err := net.Dial("tcp", addresses[r.Host])
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		in, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			_ = out.Close()
			return
		}
		_, _ = io.WriteString(in, "HTTP/1.1 200 OK\r\n\r\n")
		go func() {
			_, _ = io.Copy(out, in)
			_ = out.Close()
		}()
		_, _ = io.Copy(in, out)
		_ = in.Close()
	}))

	t.Cleanup(s.Close)
	p.url, _ = url.Parse(s.URL)
	return p
}

// noProxy is an environment that no request should depend on.
func noProxy(*http.Request) (*url.URL, error) { return nil, errors.New("the environment is not asked") }

func pullOf(p *Puller, host string) error {
	_, err := p.Pull(context.Background(), host+"/team/shop:v1")
	return err
}

// One of two registries is behind a proxy and has its own authority. The other is reached directly,
// and has another authority.
func TestRegistriesApart(t *testing.T) {
	t.Parallel()
	a, caOfA := serveTLS(t, "a.example", "storage.example")
	b, caOfB := serveTLS(t)
	proxy := serveTunnels(t, "", map[string]string{"a.example:443": a.host, "storage.example:443": a.host})
	proxies := Proxies{"a.example": proxy.url, b.host: nil}
	p := newPuller(t, Options{Authorities: Authorities{"a.example": caOfA, b.host: caOfB}, Proxies: proxies, Proxy: noProxy})
	for _, host := range []string{"a.example", "a.example:443", b.host} {
		if err := pullOf(p, host); err != nil {
			t.Error(err)
		}
	}

	if seen := proxy.seen(); !slices.Equal(seen, []string{"a.example:443"}) {
		t.Errorf("the proxy connects to %q", seen)
	}

	for _, test := range []struct {
		reason      string
		authorities Authorities
		host, want  string
	}{
		{"the other's authority, of a proxied one", Authorities{"a.example": caOfB, b.host: caOfA}, "a.example", "Give its certificate authority: --registry-ca a.example=FILE."},
		{"the other's authority", Authorities{"a.example": caOfB, b.host: caOfA}, b.host, "Give its certificate authority: --registry-ca " + b.host + "=FILE."},
		{"an authority of the other alone", Authorities{"a.example": caOfB}, b.host, "Give its certificate authority: --registry-ca " + b.host + "=FILE."},
		{"another port is another registry", Authorities{"127.0.0.1": caOfB}, b.host, "Give its certificate authority: --registry-ca " + b.host + "=FILE."},
	} {
		p := newPuller(t, Options{Authorities: test.authorities, Proxies: proxies, Proxy: noProxy})
		err := pullOf(p, test.host)
		if reason, _ := reasonOf(err); reason != ReasonUnreachable || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "x509") {
			t.Errorf("%s: %v", test.reason, err)
		}
	}

	// An authority for all registries applies in addition to a registry's own.
	p = newPuller(t, Options{CABundle: caOfB, Authorities: Authorities{"a.example": caOfA}, Proxies: proxies, Proxy: noProxy})
	for _, host := range []string{"a.example", b.host} {
		if err := pullOf(p, host); err != nil {
			t.Error(err)
		}
	}
}

// The target of a registry's redirect is reached like the registry, unless it is named itself. No
// proxy is sent to metadata services.
func TestRedirectsOfProxiedRegistries(t *testing.T) {
	t.Parallel()
	a, ca := serveTLS(t, "a.example", "storage.example")
	addresses := map[string]string{"a.example:443": a.host, "storage.example:443": a.host}
	proxy, other := serveTunnels(t, "", addresses), serveTunnels(t, "", addresses)
	target := "https://storage.example"
	a.set(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Host != "a.example" || !strings.Contains(r.URL.Path, "/blobs/") {
			return false
		}
		http.Redirect(w, r, target+r.URL.Path, http.StatusTemporaryRedirect)
		return true
	})

	for reason, opts := range map[string]Options{
		"both by the first":   {Proxies: Proxies{"a.example": proxy.url}, Authorities: Authorities{"a.example": ca}},
		"each by its own":     {Proxies: Proxies{"a.example": proxy.url, "storage.example": other.url}, Authorities: Authorities{"a.example": ca}},
		"certificates of two": {Proxies: Proxies{"a.example": proxy.url}, Authorities: Authorities{"a.example": ca, "storage.example": ca}},
	} {
		opts.Proxy = noProxy
		if err := pullOf(newPuller(t, opts), "a.example"); err != nil {
			t.Errorf("%s: %v", reason, err)
		}
		first, second := proxy.seen(), other.seen()
		if apart := opts.Proxies["storage.example"] != nil; apart != slices.Equal(second, []string{"storage.example:443"}) || apart == slices.Contains(first, "storage.example:443") {
			t.Errorf("%s: %q and %q", reason, first, second)
		}
	}

	_, foreign := issue(t)
	opts := Options{Proxies: Proxies{"a.example": proxy.url}, Authorities: Authorities{"a.example": ca, "storage.example": foreign}, Proxy: noProxy}
	require.ErrorContains(t, pullOf(newPuller(t, opts), "a.example"), "--registry-ca storage.example=FILE.", "a host that is named itself")

	proxy.seen()
	target = "https://169.254.169.254"
	err := pullOf(newPuller(t, Options{Proxies: opts.Proxies, Authorities: Authorities{"a.example": ca}}), "a.example")
	if reason, _ := reasonOf(err); reason != ReasonForbiddenAddress || slices.Contains(proxy.seen(), "169.254.169.254:443") {
		t.Error(err)
	}
}

// Files are read for each pull. Their content at that time counts, and an unreadable one affects
// only its own registry.
func TestAuthoritiesAreReadAnew(t *testing.T) {
	t.Parallel()
	a, caOfA := serveTLS(t)
	b, caOfB := serveTLS(t)
	p := newPuller(t, Options{Authorities: Authorities{a.host: caOfA, b.host: caOfB}})
	copyOf := func(from, to string) {
		t.Helper()
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, text, 0o600)
		}
		require.NoError(t, err)
	}

	good := caOfB + ".good"
	copyOf(caOfB, good)
	copyOf(caOfA, caOfB)
	if err := pullOf(p, b.host); err == nil {
		t.Error("the authority of before is still trusted")
	}

	copyOf(good, caOfB)
	if err := pullOf(p, b.host); err != nil {
		t.Error(err)
	}

	require.NoError(t, os.Remove(caOfB))
	err := pullOf(p, b.host)
	reason, _ := reasonOf(err)
	for _, want := range []string{"--registry-ca " + b.host, caOfB, "no such file", bundleRemedy} {
		if reason != ReasonLocal || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}

	if err := pullOf(p, a.host); err != nil {
		t.Errorf("the other registry: %v", err)
	}
}

// An error of a proxy is reported with the place of its configuration, and never with its
// credentials.
func TestProxyErrors(t *testing.T) {
	t.Parallel()
	const password = "geh%eim/99"
	a, ca := serveTLS(t, "a.example")
	proxy := serveTunnels(t, password, map[string]string{"a.example:443": a.host})
	as := func(at *url.URL, scheme, password string) *url.URL {
		return &url.URL{Scheme: scheme, User: url.UserPassword("user", password), Host: at.Host}
	}
	opts := Options{Authorities: Authorities{"a.example": ca}, Proxy: noProxy}
	opts.Proxies = Proxies{"a.example": as(proxy.url, "http", password)}
	require.NoError(t, pullOf(newPuller(t, opts), "a.example"))
	hostile, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = hostile.Close() })
	go func() {
		for {
			conn, err := hostile.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 4096)) // a close with unread data would reset the connection
			_, _ = fmt.Fprintf(conn, "HTTP/1.1 502 %s\r\nX: %[1]s\r\n\r\n%[1]s", password)
			_ = conn.Close()
		}
	}()

	const gone = "127.0.0.1:1" // no other server gets this port
	at := func(address string) *url.URL { return &url.URL{Host: address} }
	for _, test := range []struct {
		reason      string
		proxy       *url.URL
		environment bool
		want        []string
	}{
		{"other credentials", as(proxy.url, "http", password+"x"), false, []string{"answers 407 Proxy Authentication Required for a.example:443", proxy.url.Host, proxyRemedy}},
		{"credentials in its answer", as(at(hostile.Addr().String()), "http", password), false, []string{"answers 502 Bad Gateway", proxyRemedy}},
		{"no connection", as(at(gone), "http", password), false, []string{"connection refused", proxyRemedy}},
		{"no connection by TLS", as(proxy.url, "https", password), false, []string{proxyRemedy}},
		{"no connection by SOCKS", as(at(gone), "socks5", password), false, []string{"connection refused", proxyRemedy}},
		{"no SOCKS", as(at(hostile.Addr().String()), "socks5h", password), false, []string{proxyRemedy}},
		{"of the environment", as(at(gone), "http", password), true, []string{"connection refused", proxyRemedy}},
	} {
		opts := opts
		opts.Proxies = Proxies{"a.example": test.proxy}
		if test.environment {
			opts.Proxies, opts.Proxy = nil, http.ProxyURL(test.proxy)
		}
		err := pullOf(newPuller(t, opts), "a.example")
		if reason, _ := reasonOf(err); reason != ReasonUnreachable {
			t.Errorf("%s: %v", test.reason, err)
			continue
		}
		for _, want := range test.want {
			require.Contains(t, err.Error(), want, test.reason)
		}
		checkNoSecret(t, test.reason, err, password)
	}
}

func checkNoSecret(t *testing.T, reason string, err error, password string) {
	t.Helper()
	for _, secret := range []string{password, url.PathEscape(password), url.QueryEscape(password), base64.StdEncoding.EncodeToString([]byte("user:" + password))} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v has the password", reason, err)
		}
	}
}

// Connections other than pulls, such as pushes, are made in the same way.
func TestTransport(t *testing.T) {
	t.Parallel()
	a, ca := serveTLS(t, "a.example")
	proxy := serveTunnels(t, "geheim99", map[string]string{"a.example:443": a.host})
	get := func(o Options, registry string) error {
		rt, err := o.Transport(registry, &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}})
		if err != nil {
			return err
		}
		resp, err := (&http.Client{Transport: rt}).Get("https://" + registry + "/v2/")
		if err == nil {
			_ = resp.Body.Close()
		}
		return err
	}

	with := func(password string) Options {
		return Options{Authorities: Authorities{"a.example": ca}, Proxies: Proxies{"a.example": {Scheme: "http", User: url.UserPassword("user", password), Host: proxy.url.Host}}}
	}

	if err := get(with("geheim99"), "a.example"); err != nil {
		t.Error(err)
	}
	if err := get(with("geheim98"), "a.example"); err == nil || !strings.Contains(err.Error(), "answers 407 Proxy Authentication Required for a.example:443. Check the proxy") || strings.Contains(err.Error(), "geheim") {
		t.Error(err)
	}
	if err := get(Options{Authorities: Authorities{"b.example": ca}}, a.host); err == nil {
		t.Error("the authority of another registry is trusted")
	}
	require.ErrorContains(t, get(Options{Authorities: Authorities{"a.example": "/nowhere"}}, "a.example"), "--registry-ca a.example: read the certificate authorities: open /nowhere")
}

func TestParseSettings(t *testing.T) {
	t.Parallel()
	authorities, err := ParseAuthorities([]string{"quay.io=/ca/a=b.pem", "docker.io=hub.pem", "Registry.Example:443=c", "[::1]:5000=d"})
	want := fmt.Sprint(Authorities{"quay.io": "/ca/a=b.pem", "index.docker.io": "hub.pem", "registry.example": "c", "[::1]:5000": "d"})
	if got := fmt.Sprint(authorities); err != nil || got != want || !authorities.Has("quay.io:443") || authorities.Has("quay.io:5000") {
		t.Errorf("%s, %v", got, err)
	}

	proxies, err := ParseProxies([]string{"quay.io=http://proxy.example:3128", "a:5000=direct", "b=socks5h://u:p=w@[::1]:1080/", "c=https://proxy.example"})
	if err != nil || len(proxies) != 4 || proxies["a:5000"] != nil || proxies["quay.io"].Host != "proxy.example:3128" || proxies["b"].Host != "[::1]:1080" {
		t.Errorf("%v, %v", proxies, err)
	}

	for text, want := range map[string]string{
		"": "want HOST[:PORT]=FILE", "quay.io": "quay.io: want HOST[:PORT]=FILE", "quay.io=": "quay.io: want", "=x": "want", "https://quay.io=x": "want", "quay.io/a=x": "want", "a b=x": "want",
	} {
		if _, err := ParseAuthorities([]string{text}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}

	for _, text := range []string{
		"http://user:geheim@proxy", "user:geheim@quay.io=x", "quay.io=user:geheim@proxy:3128", "quay.io=http://user:geh%zzeim@proxy", "quay.io=http://user:geheim@", "quay.io=ftp://user:geheim@proxy",
		"quay.io=http://user:geheim@proxy/path", "quay.io=http://user:geheim@proxy?q", "quay.io=http://user:geheim@proxy#f", "quay.io=http://user:geheim@proxy:x", "quay.io=Direct",
	} {
		if _, err := ParseProxies([]string{text}); err == nil || strings.Contains(err.Error(), "eim") || !strings.Contains(err.Error(), "want") {
			t.Errorf("%q: %v", text, err)
		}
	}

	if _, err := ParseProxies([]string{"docker.io=direct", "index.docker.io=direct"}); err == nil {
		t.Error("twice")
	}
	if _, err := ParseAuthorities([]string{"a=x", "a:443=y"}); err == nil {
		t.Error("twice")
	}
}
