package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"lockstep.run/lockstep/internal/kube/outbound"
	"lockstep.run/lockstep/internal/loader/archive"
	"lockstep.run/lockstep/test/require"
)

// dialled is a TLS registry with one image in each of its repositories, and the number of
// connections that were made to it.
func dialled(t *testing.T, images int) (s *server, refs []string, connections *atomic.Int32) {
	t.Helper()
	connections = &atomic.Int32{}
	s = serve(t, func(h http.Handler) *httptest.Server {
		s := httptest.NewUnstartedServer(h)
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				connections.Add(1)
			}
		}
		s.StartTLS()
		return s
	})

	for i := range images {
		files := archive.Files{"manifest.yaml": fmt.Appendf(nil, "kind: PackageManifest # %d\n", i)}
		ref, digest := s.push(t, imageOf(t, files))
		refs = append(refs, strings.TrimSuffix(ref, ":v1")+"@"+digest)
	}

	s.CloseClientConnections()
	connections.Store(0)
	return s, refs, connections
}

// Consecutive pulls use the same connections, with any credentials.
func TestPullsShareConnections(t *testing.T) {
	t.Parallel()
	const images = 5
	s, refs, connections := dialled(t, images)
	p := newPuller(t, Options{CABundle: writeBundle(t, s.Certificate().Raw)})
	if _, err := p.Pull(context.Background(), refs[0]); err != nil {
		t.Fatal(err)
	}

	first := connections.Load() // the ping also tries HTTP if the host is a loopback address
	for _, ref := range refs[1:] {
		if _, err := p.With(Access{Keychain: p.opts.Keychain}).Pull(context.Background(), ref); err != nil {
			t.Fatal(err)
		}
	}

	if n := connections.Load(); first == 0 || n > first+1 || s.count("GET manifests") != images {
		t.Errorf("%d connections for the first of %d images, %d for all", first, images, n)
	}
}

// The first pull finds out that a registry speaks plain HTTP. After a failure, this is checked
// again.
func TestPlainRegistriesAreNotAskedAgain(t *testing.T) {
	t.Parallel()
	var handshakes atomic.Int32
	s := serve(t, func(h http.Handler) *httptest.Server {
		s := httptest.NewUnstartedServer(h)
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		s.Listener = handshakeListener{s.Listener, &handshakes}
		s.Start()
		return s
	})

	pull := func(p *Puller) int32 {
		before := handshakes.Load()
		ref, _ := s.push(t, imageOf(t, archive.Files{"manifest.yaml": fmt.Appendf(nil, "kind: PackageManifest # %d\n", before)}))
		pushed := handshakes.Load()
		if _, err := p.Pull(context.Background(), ref); err != nil {
			t.Fatal(err)
		}
		return handshakes.Load() - pushed
	}

	p := newPuller(t, Options{InsecureRegistries: []string{s.host}})
	if pull(p) == 0 {
		t.Error("the first pull does not try HTTPS")
	}
	require.Equal(t, int32(0), pull(p), "handshakes for the next pull")

	s.set(func(w http.ResponseWriter, r *http.Request) bool {
		w.WriteHeader(http.StatusNotFound)
		return true
	})

	if _, err := p.Resolve(context.Background(), s.host+"/team/shop:v2"); err == nil {
		t.Error("no error")
	}

	s.set(nil)
	if pull(p) == 0 {
		t.Error("HTTPS is not tried after a failure")
	}
}

// handshakeListener counts connections that start with a TLS handshake.
type handshakeListener struct {
	net.Listener
	count *atomic.Int32
}

func (l handshakeListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return &handshakeConn{Conn: conn, count: l.count}, err
}

type handshakeConn struct {
	net.Conn
	count *atomic.Int32
	begun bool
}

func (c *handshakeConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && !c.begun {
		c.begun = true
		if p[0] == 22 { // the content type handshake, RFC 8446 section 5.1
			c.count.Add(1)
		}
	}
	return n, err
}

// Connections end when the bundle on disk that they were trusted by changes.
func TestConnectionsEndWithTheirBundle(t *testing.T) {
	t.Parallel()
	s, refs, _ := dialled(t, 2)
	bundle := writeBundle(t, s.Certificate().Raw)
	p := newPuller(t, Options{CABundle: bundle})
	if _, err := p.Pull(context.Background(), refs[0]); err != nil {
		t.Fatal(err)
	}
	_, another := expired(t)
	require.NoError(t, os.Rename(writeBundle(t, another), bundle))
	if _, err := p.Pull(context.Background(), refs[1]); err == nil {
		t.Error("a connection was used that the bundle of now does not trust")
	}
}

// After a failure, the next pull starts with new connections.
func TestFailuresEndConnections(t *testing.T) {
	t.Parallel()
	s, refs, connections := dialled(t, 2)
	p := newPuller(t, Options{InsecureRegistries: []string{s.host}})
	s.set(func(w http.ResponseWriter, r *http.Request) bool {
		if kindOf(r.URL.Path) == "blobs" {
			w.WriteHeader(http.StatusNotFound)
		}
		return kindOf(r.URL.Path) == "blobs"
	})

	if _, err := p.Pull(context.Background(), refs[0]); err == nil {
		t.Fatal("no error")
	}

	s.set(nil)
	before := connections.Load()
	if _, err := p.Pull(context.Background(), refs[1]); err != nil || connections.Load() == before {
		t.Errorf("%d connections before and %d after: %v", before, connections.Load(), err)
	}
}

// Guards are shared by pulls of the same registry, and only for a limited time.
func TestGuardsAreKeptForAWhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPuller(t, Options{})
		of := func(host string) *guard {
			g, err := p.guardOf(host)
			require.NoError(t, err)
			return g
		}
		first := of("a.example")
		if of("b.example") == first || of("a.example:5000") == first {
			t.Error("another registry has the guard")
		}
		if of("a.example") != first {
			t.Error("the guard differs from the next pull's")
		}
		if first.verified.transports[""].IdleConnTimeout != registryIdle || first.unverified.IdleConnTimeout != registryIdle {
			t.Error("connections wait too long")
		}
		time.Sleep(registryConnectionAge + 1)
		if first = of("a.example"); len(p.guards.Keys()) != 1 {
			t.Error("a guard is too old")
		}
		for i := range registryConnections {
			of(fmt.Sprintf("%d.example", i))
		}
		if n := len(p.guards.Keys()); n != registryConnections || of("a.example") == first {
			t.Errorf("%d guards wait", n)
		}
	})
}

// A registry at a private address can lead to others as long as it is there. If it moves to a
// public address it no longer can, not even over connections that were made before.
func TestGuardsFollowTheRegistry(t *testing.T) {
	t.Parallel()
	const registry, elsewhere, private, public = "registry.example:443", "cdn.example:443", "10.0.0.1:443", "93.184.216.34:443"
	p := newPuller(t, Options{})
	g := p.newGuard(guardKey{host: registry}, p.opts.bundles())
	closed := 0
	g.dialer.renew = func() { closed++ }
	check := func(reason string, wanted bool, address, resolved string) {
		t.Helper()
		if err := g.dialer.check(address, addressOf(t, resolved), false); (err == nil) != wanted {
			t.Errorf("%s: %v", reason, err)
		}
	}

	check("the registry", true, registry, private)
	check("behind it", true, elsewhere, private)
	check("the registry, for the next pull", true, registry, private)
	check("behind it, for the next pull", true, elsewhere, private)
	require.Equal(t, 0, closed, "connections were closed without need")

	check("the registry, which has moved", true, registry, public)
	check("behind a public one", false, elsewhere, private)
	require.Equal(t, 1, closed, "connections of before were closed")

	check("the registry, at its other address", true, registry, private)
	check("behind a private one", true, elsewhere, private)
}

func addressOf(t *testing.T, hostport string) outbound.Address {
	t.Helper()
	a, err := outbound.ParseAddrPort(hostport)
	require.NoError(t, err)
	return a
}

// The image of a namespaced package is pulled from a private address only if a flag names the
// network or the registry, and from a loopback address only if a flag names the registry.
func TestAddressesOfRegistries(t *testing.T) {
	t.Parallel()
	policy := outbound.Policy{Private: outbound.Networks{netip.MustParsePrefix("10.1.0.0/16")}}
	p, err := NewPuller(Options{
		Policy: policy, InsecureRegistries: []string{"insecure.example:5000", "plain.example"},
		RegistryHosts: Overrides{{From: "quay.io", To: "mirror.example"}}, ImagePrefixes: Overrides{{From: "quay.io/a", To: "prefix.example:1/a"}},
	})
	require.NoError(t, err)
	for _, test := range []struct {
		host, address       string
		cluster, namespaced bool
	}{
		{"a.example:443", "93.184.216.34:443", true, true},
		{"a.example:443", "10.0.0.1:443", true, false},
		{"a.example:443", "10.1.0.1:443", true, true},
		{"a.example:443", "127.0.0.1:443", false, false},
		{"a.example:443", "169.254.169.254:443", false, false},
		{"insecure.example:5000", "10.0.0.1:5000", true, true},
		{"insecure.example:5000", "127.0.0.1:5000", true, true},
		{"insecure.example:5000", "169.254.169.254:5000", false, false},
		{"insecure.example:443", "10.0.0.1:443", true, false},
		{"plain.example:80", "10.0.0.1:80", true, true},
		{"mirror.example:443", "10.0.0.1:443", true, true},
		{"prefix.example:1", "10.0.0.1:1", true, true},
	} {
		for _, namespaced := range []bool{false, true} {
			want := test.cluster
			if namespaced {
				want = test.namespaced
			}
			g := p.newGuard(guardKey{host: test.host, namespaced: namespaced}, p.opts.bundles())
			err := g.dialer.check(test.host, addressOf(t, test.address), false)
			require.Equal(t, want, err == nil, fmt.Sprintf("%s at %s, namespaced %v: %v", test.host, test.address, namespaced, err))
			var refused *failure
			if namespaced && test.cluster && !test.namespaced && (!errors.As(err, &refused) || !strings.Contains(refused.remedy, "--allow-private-sources")) {
				t.Errorf("%s at %s: the flag is not named: %v", test.host, test.address, err)
			}
		}
	}
}

// An object in a namespace uses neither connections nor downloads of a cluster-scoped object.
func TestNamespacesHaveConnectionsOfTheirOwn(t *testing.T) {
	t.Parallel()
	p := newPuller(t, Options{})
	cluster, err := p.guardOf("a.example")
	require.NoError(t, err)
	in := func(namespace string) *guard {
		g, err := p.With(Access{Namespace: namespace}).guardOf("a.example")
		require.NoError(t, err)
		return g
	}
	if in("team") == cluster || in("team") != in("other") {
		t.Error("guards are shared by other rules")
	}
}
