package registry

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"

	"lockstep.run/lockstep/test/require"
)

func keychainFor(t *testing.T, host, password string) authn.Keychain {
	t.Helper()
	keys, err := NewKeychain([]byte(fmt.Sprintf(`{"auths":{"%s":{"username":"user","password":"%s"}}}`, host, password)))
	require.NoError(t, err)
	return keys
}

// Credentials of one pull are used for that one alone: another pull of the same
// image at the same time does not get what it could not read itself.
func TestAccessIsNotShared(t *testing.T) {
	t.Parallel()
	s := serve(t, httptest.NewServer)
	ref, _ := s.push(t, imageOf(t, testFiles))
	arrived, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s.set(func(w http.ResponseWriter, r *http.Request) bool {
		_, password, _ := r.BasicAuth()
		switch {
		case r.Method == http.MethodHead:
			return false // the right to resolve a tag is not that to read it
		case password != "geheim":
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
			return true
		case kindOf(r.URL.Path) == "blobs":
			once.Do(func() { close(arrived) })
			<-release
		}
		return false
	})
	p := newPuller(t, Options{InsecureRegistries: []string{s.host}, Keychain: authn.NewMultiKeychain()})
	pulled := make(chan error, 1)
	go func() {
		_, err := p.With(Access{Keychain: keychainFor(t, s.host, "geheim")}).Pull(context.Background(), ref)
		pulled <- err
	}()
	<-arrived
	for name, other := range map[string]*Puller{
		"without credentials":    p,
		"with other credentials": p.With(Access{Keychain: keychainFor(t, s.host, "falsch")}),
	} {
		_, err := other.Pull(context.Background(), ref)
		if reason, _ := reasonOf(err); reason != ReasonUnauthorized {
			t.Errorf("%s: %v", name, err)
		}
	}
	close(release)
	if err := <-pulled; err != nil {
		t.Error(err)
	}
}

// Offline, what the cache holds is used without requests.
func TestOffline(t *testing.T) {
	t.Parallel()
	s := serve(t, httptest.NewServer)
	ref, digest := s.push(t, imageOf(t, testFiles))
	p := newPuller(t, Options{InsecureRegistries: []string{s.host}, CacheDir: t.TempDir()})
	offline := p.With(Access{Offline: true})
	byDigest := s.host + "/team/shop@" + digest
	for _, reference := range []string{ref, byDigest} {
		_, err := offline.Pull(context.Background(), reference)
		if reason, temporary := reasonOf(err); reason != ReasonNotCached || temporary {
			t.Errorf("%s: %v", reference, err)
		}
	}
	if n := len(s.requests); n > 0 {
		t.Errorf("asked: %v", s.requests)
	}
	if _, err := p.Pull(context.Background(), ref); err != nil {
		t.Fatal(err)
	}
	before := len(s.requests)
	image, err := offline.Pull(context.Background(), byDigest)
	if err != nil || image.Digest != digest || len(image.Files) != len(testFiles) || len(s.requests) != before {
		t.Errorf("%v %v %v", image, err, s.requests[before:])
	}
}
