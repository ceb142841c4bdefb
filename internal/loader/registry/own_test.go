package registry

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"

	"lockstep.run/lockstep/test/require"
)

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
	if reason := pull(Access{}, ref); reason != "" {
		t.Errorf("a ClusterPackage: %s", reason)
	}

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
			if got := pull(test.access, test.ref); got != test.want {
				t.Errorf("%s: %q, want %q", test.reason, got, test.want)
			}
		}
	}

	if n := s.count("GET blobs"); n != 2 {
		t.Errorf("%d layers were downloaded, want one for all and one for the repository", n)
	}

	before := s.count("HEAD manifests")
	if pull(team, ref); s.count("HEAD manifests") != before+1 || s.count("GET blobs") != 2 {
		t.Error("an image in the cache costs more than one question")
	}
}
