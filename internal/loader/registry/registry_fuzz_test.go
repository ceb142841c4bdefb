package registry

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

// FuzzReference checks that any reference is either refused with a reason that does not contain its
// credentials, or names one host and keeps its meaning when it is written in full.
//
// Code: reference.go
func FuzzReference(f *testing.F) {
	byDigest := "@sha256:" + strings.Repeat("0123456789abcdef", 4)
	for _, seed := range []string{
		"nginx", "quay.io/a/b:v1", "localhost:5000/x" + byDigest, "registry.example/a:v1" + byDigest, "user:geheim@host/a", "https://host/a", "[::1]:5000/a", "UPPER/x", "a/b@sha256:short", "host:0/a", "xn--nxasmq6b/a", "a//b", "a:b:c", "\u202ea", ".", "a/..",
	} {
		f.Add(seed)
	}

	p := &Puller{insecure: map[string]bool{"localhost:5000": true}}
	f.Fuzz(func(t *testing.T, text string) {
		const password = "geheim-geheim"
		if _, err := p.parse("user:" + password + "@" + text); err != nil && strings.Contains(err.Error(), password) && !digest.MatchString(text) {
			t.Fatal(err)
		}
		ref, err := p.parse(text)
		if err != nil {
			var own *PullError
			if !errors.As(err, &own) || own.Reason != ReasonInvalidReference || own.Details == "" || own.Remedy == "" {
				t.Fatalf("%#v", err)
			}
			return
		}
		host := ref.Context().RegistryStr()
		if len(text) > limits.ReferenceBytes || host == "" || strings.ContainsAny(host, "@/ \\") {
			t.Fatalf("%q is on %q", text, host)
		}
		if plain := ref.Context().Scheme() == "http"; plain && host != "localhost:5000" && !isNear(host) {
			t.Fatalf("%q by plain HTTP", text)
		}
		again, err := p.parse(ref.Name())
		if err != nil || again.Name() != ref.Name() {
			t.Fatalf("%q is %q, and that %v, %v", text, ref.Name(), again, err)
		}
	})
}

// FuzzProxies checks that any setting of a proxy is either refused without quoting its credentials,
// or has one host and a usable proxy.
//
// Code: hosts.go
func FuzzProxies(f *testing.F) {
	for _, seed := range []string{
		"quay.io=http://proxy.example:3128", "a:5000=direct", "a=socks5://user:geheim@[::1]:1080", "http://user:geheim@a=b", "a=://@", "a=http://user:%zz@b", "[::1]:5000=https://@b/", "=", "a=\x00@",
	} {
		f.Add(seed)
	}

	f.Fuzz(func(t *testing.T, text string) {
		proxies, err := ParseProxies([]string{text})
		if err != nil {
			if _, value, _ := strings.Cut(text, "="); strings.Contains(value, "@") && strings.Contains(err.Error(), value) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		for host, proxy := range proxies {
			if host == "" || strings.ContainsAny(host, "@/ \\") || proxy != nil && (proxy.Hostname() == "" || !slices.Contains(proxySchemes, proxy.Scheme)) {
				t.Fatalf("%q: %q, %v", text, host, proxy)
			}
			if again, err := ParseProxies([]string{host + "=direct"}); err != nil || len(again) != 1 {
				t.Fatalf("%q: %q, %v", text, host, err)
			}
		}
		if _, err := ParseAuthorities([]string{text}); err != nil {
			t.Fatal(err)
		}
	})
}

// isNear reports whether the library treats a host as on this machine or network.
func isNear(host string) bool {
	r, err := name.NewRegistry(host)
	return err == nil && r.Scheme() == "http"
}

// target is a repository that credentials are requested for.
type target struct{ host, path string }

func (r target) String() string      { return r.host + "/" + r.path }
func (r target) RegistryStr() string { return r.host }

// FuzzKeychain checks that any pull secrets are either refused without quoting their content, or
// give a repository the credentials of an entry for exactly its host.
//
// Code: keychain.go
func FuzzKeychain(f *testing.F) {
	f.Add(`{"auths":{"https://quay.io/v1/":{"auth":"dXNlcjpnZWhlaW0tZ2VoZWlt"}}}`, "quay.io", "a/b")
	f.Add(`{"*.example.com:5000/team":{"username":"u","password":"geheim-geheim"},"r.example.com:5000":{"identitytoken":"t"}}`, "r.example.com:5000", "team/x")
	f.Add(`{"auths":{"docker.io":{"registrytoken":"t"},"a.b":{"auth":"!"}}}`, "index.docker.io", "library/x")
	f.Add(`{"auths":[]}`, "", "")
	f.Add(`{"auths":{"[":{"username":"a"},"?.b":{"username":"b"}}}`, "a.b", "x")
	f.Fuzz(func(t *testing.T, config, host, path string) {
		if len(config) > 4<<10 {
			return
		}
		keys, err := NewKeychain([]byte(config))
		if err != nil {
			if strings.Contains(err.Error(), "geheim") && !slices.ContainsFunc(hostsOf(config), func(key string) bool { return strings.Contains(key, "geheim") }) {
				t.Fatal(err)
			}
			return
		}
		got, err := keys.Resolve(target{host, path})
		if err != nil || got == authn.Anonymous {
			return
		}
		auth, err := got.Authorization()
		require.NoError(t, err)
		if !namedBy(config, host) {
			t.Fatalf("%q gets %v", host, auth.Username)
		}
	})
}

// namedBy reports whether a key of a Docker config covers a host: it has as many labels, each of
// them equal or a wildcard, and the same port.
func namedBy(config, host string) bool {
	for _, key := range hostsOf(config) {
		pattern, _ := splitKey(key)
		if strings.Count(pattern, ".") != strings.Count(host, ".") {
			continue
		}
		if strings.TrimSuffix(pattern, ":") == strings.TrimSuffix(host, ":") || strings.ContainsAny(pattern, `*?[\`) {
			return true
		}
	}
	return false
}

// hostsOf returns the keys of a Docker config.
func hostsOf(config string) []string {
	var nested struct {
		Auths map[string]any `json:"auths"`
	}
	_ = json.Unmarshal([]byte(config), &nested)
	if nested.Auths == nil {
		_ = json.Unmarshal([]byte(config), &nested.Auths)
	}
	return slices.Collect(maps.Keys(nested.Auths))
}
