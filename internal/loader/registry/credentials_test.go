package registry

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"

	"lockstep.run/lockstep/test/require"
)

// Credentials are sent only to their registry. They are not sent to the target of a redirect, and
// do not appear in messages.
func TestCredentialsStayWithTheRegistry(t *testing.T) {
	t.Parallel()
	var leaked atomic.Bool
	s, elsewhere := serve(t, httptest.NewServer), serve(t, httptest.NewServer)
	ref, _ := s.push(t, imageOf(t, testFiles))
	_, _ = elsewhere.push(t, imageOf(t, testFiles))
	elsewhere.set(func(_ http.ResponseWriter, r *http.Request) bool {
		leaked.Store(leaked.Load() || r.Header.Get("Authorization") != "")
		return false
	})

	s.set(func(w http.ResponseWriter, r *http.Request) bool {
		user, password, _ := r.BasicAuth()
		switch {
		case user != "user" || password != "geheim":
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
			return true
		case kindOf(r.URL.Path) == "blobs":
			http.Redirect(w, r, elsewhere.URL+r.URL.Path, http.StatusTemporaryRedirect)
			return true
		}
		return false
	})

	secret := fmt.Sprintf(`{"auths":{"%s/team":{"username":"user","password":"geheim"}}}`, s.host)
	keys, err := NewKeychain([]byte(secret))
	require.NoError(t, err)
	p := newPuller(t, Options{InsecureRegistries: []string{s.host, elsewhere.host}, Keychain: keys})
	if _, err := p.Pull(context.Background(), ref); err != nil {
		t.Fatal(err)
	}
	if leaked.Load() {
		t.Error("the credentials went to another host")
	}

	s.set(func(w http.ResponseWriter, r *http.Request) bool {
		http.Error(w, "I know "+r.Header.Get("Authorization")+" and geheim", http.StatusBadGateway)
		return true
	})
	_, err = p.Pull(context.Background(), ref)
	if err == nil || strings.Contains(err.Error(), "geheim") || strings.Contains(err.Error(), "dXNlcjpnZWhlaW0") {
		t.Error("the error shows credentials:", err)
	}
}

func TestBearerToken(t *testing.T) {
	t.Parallel()
	s := serve(t, httptest.NewServer)
	ref, _ := s.push(t, imageOf(t, testFiles))
	s.set(func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.URL.Path == "/token":
			if _, password, _ := r.BasicAuth(); password != "geheim" {
				w.WriteHeader(http.StatusUnauthorized)
				return true
			}
			_, _ = fmt.Fprint(w, `{"token":"t0ken"}`)
			return true
		case r.Header.Get("Authorization") != "Bearer t0ken":
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="%s/token",service="x"`, s.URL))
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
		return false
	})

	keys, err := NewKeychain([]byte(fmt.Sprintf(`{"auths":{"%s":{"auth":"dXNlcjpnZWhlaW0="}}}`, s.host)))
	require.NoError(t, err)
	if _, err := newPuller(t, Options{InsecureRegistries: []string{s.host}, Keychain: keys}).Pull(context.Background(), ref); err != nil {
		t.Error(err)
	}

	_, err = newPuller(t, Options{InsecureRegistries: []string{s.host}}).Pull(context.Background(), ref)
	if reason, _ := reasonOf(err); reason != ReasonUnauthorized {
		t.Error(err)
	}
}

func TestKeychain(t *testing.T) {
	t.Parallel()
	keys, err := NewKeychain(
		[]byte(`{"auths":{
			"https://index.docker.io/v1/":{"username":"hub","password":"p"},
			"*.example.com":{"username":"wild","password":"p"},
			"quay.io":{"username":"quay","password":"p"},
			"quay.io/team":{"username":"team","password":"p"},
			"host:5000":{"auth":"cG9ydDpwOnE="}}}`),
		[]byte(`{"old.example":{"username":"old","password":"p"},"quay.io":{"username":"late","password":"p"}}`))

	require.NoError(t, err)
	for repo, want := range map[string]string{
		"ubuntu": "hub", "docker.io/x/y": "hub", "a.example.com/x": "wild", "a.b.example.com/x": "", "example.com/x": "",
		"quay.io/x": "quay", "quay.io/team/x": "team", "quay.io/teams/x": "quay", "host:5000/x": "port", "host.local/x": "",
		"old.example/x": "old",
	} {
		r, err := name.NewRepository(repo)
		require.NoError(t, err)
		auth, err := keys.Resolve(r)
		require.NoError(t, err)
		config, err := authn.Authorization(context.Background(), auth)
		if err != nil || config.Username != want {
			t.Errorf("%s: %q, want %q (%v)", repo, config.Username, want, err)
		}
		if want == "port" && config.Password != "p:q" {
			t.Errorf("password %q", config.Password)
		}
	}

	for _, bad := range []string{`x`, `{"auths":{"h":{"auth":"geheim"}}}`, `{"auths":{"h":1}}`, `[]`} {
		if _, err := NewKeychain([]byte(bad)); err == nil || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestDialerCheck(t *testing.T) {
	t.Parallel()
	public := func() *dialer { return &dialer{registry: "registry.example"} }
	private := public()
	private.private = true
	for _, test := range []struct {
		reason            string
		d                 *dialer
		address, resolved string
		ok                bool
	}{
		{"the registry itself, public", public(), "registry.example:443", "93.184.216.34:443", true},
		{"the registry itself, private", public(), "registry.example:443", "10.0.0.1:443", true},
		{"a public blob store", public(), "cdn.example:443", "93.184.216.34:443", true},
		{"a private address behind a public registry", public(), "cdn.example:443", "10.0.0.1:443", false},
		{"loopback behind a public registry", public(), "cdn.example:443", "[::1]:443", false},
		{"mapped into IPv6", public(), "cdn.example:443", "[::ffff:10.0.0.1]:443", false},
		{"a private address behind a private registry", private, "cdn.example:443", "10.0.0.1:443", true},
		{"metadata service", private, "cdn.example:443", "169.254.169.254:443", false},
		{"metadata service as the registry", private, "registry.example:443", "[fe80::1]:443", false},
		{"metadata service in shared addresses", public(), "cdn.example:443", "100.100.100.200:443", false},
		{"shared addresses behind a private registry", private, "cdn.example:443", "100.64.0.1:443", true},
		{"metadata service by NAT64", private, "cdn.example:443", "[64:ff9b::a9fe:a9fe]:443", false},
		{"a private address by NAT64", public(), "cdn.example:443", "[64:ff9b::a00:1]:443", false},
		{"a public address by NAT64", public(), "cdn.example:443", "[64:ff9b::5db8:d822]:443", true},
	} {
		if err := test.d.check(test.address, addressOf(t, test.resolved), false); (err == nil) != test.ok {
			t.Errorf("%s: %v", test.reason, err)
		}
	}
}

// serveFor is a registry that only one user can read.
func serveFor(t *testing.T, user string) (s *server, ref string) {
	t.Helper()
	s = serve(t, httptest.NewServer)
	tagged, digest := s.push(t, imageOf(t, testFiles))
	s.set(func(w http.ResponseWriter, r *http.Request) bool {
		if name, _, _ := r.BasicAuth(); name == user {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="r"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	return s, strings.TrimSuffix(tagged, ":v1") + "@" + digest
}

func loginOf(t *testing.T, host, user string) authn.Keychain {
	t.Helper()
	keys, err := NewKeychain(fmt.Appendf(nil, `{"auths":{%q:{"username":%q,"password":"p"}}}`, host, user))
	require.NoError(t, err)
	return keys
}

// With Own, the cache does not return an image by digest to an account that cannot read it. Neither
// the credentials of the Puller nor content from another repository change that.
func TestOwnAccess(t *testing.T) {
	t.Parallel()
	s, ref := serveFor(t, "team")
	// The attacker's registry has everything that it is asked for.
	evil := serve(t, httptest.NewServer)
	evil.set(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodHead {
			_, digest, _ := strings.Cut(ref, "@")
			w.Header().Set("Docker-Content-Digest", digest)
			return true
		}
		return false
	})

	p := newPuller(t, Options{InsecureRegistries: []string{s.host, evil.host}, CacheDir: t.TempDir(), Keychain: loginOf(t, s.host, "team")})
	pull := func(access Access, ref string) Reason {
		t.Helper()
		_, err := p.With(access).Pull(context.Background(), ref)
		reason, _ := reasonOf(err)
		if (err == nil) != (reason == "") {
			t.Fatal(err)
		}
		return reason
	}

	stolen := evil.host + ref[strings.IndexByte(ref, '/'):]
	require.Equal(t, Reason(""), pull(Access{}, ref), "a ClusterPackage")

	team, other := Access{Namespace: "a", Own: true, Keychain: loginOf(t, s.host, "team")}, Access{Namespace: "b", Own: true, Keychain: loginOf(t, s.host, "other")}
	for range 2 {
		for _, test := range []struct {
			reason string
			access Access
			ref    string
			want   Reason
		}{
			{"accounts with the right to read it", team, ref, ""},
			{"accounts without the right", other, ref, ReasonUnauthorized},
			{"those without credentials", Access{Namespace: "c", Own: true}, ref, ReasonUnauthorized},
			{"by a registry that confirms everything", other, stolen, ReasonNotFound},
			{"without a question", Access{Namespace: "a", Own: true, Offline: true}, ref, ReasonNotCached},
			{"shared", Access{Namespace: "b"}, ref, ""},
		} {
			require.Equal(t, test.want, pull(test.access, test.ref), test.reason)
		}
	}

	require.Equal(t, 2, s.count("GET blobs"), "layers were downloaded")

	before := s.count("HEAD manifests")
	if pull(team, ref); s.count("HEAD manifests") != before+1 || s.count("GET blobs") != 2 {
		t.Error("an image in the cache costs more than one question")
	}
}
