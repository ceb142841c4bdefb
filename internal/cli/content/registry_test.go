package content

import (
	"context"
	"strings"
	"testing"

	"lockstep.run/lockstep/test/require"
)

// Registries on this machine need no flag, as with docker and crane. All others do.
func TestTrusts(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"localhost": true, "localhost:5000": true, "127.0.0.1:5000": true, "127.9.9.9": true, "[::1]:5000": true, "[::1]": true,
		"registry.example.com": false, "10.0.0.1:5000": false, "localhost.example.com": false, "127.0.0.1.example.com:5000": false, "[fe80::1]:5000": false, "": false,
	} {
		require.Equal(t, want, (&RegistryFlags{}).trusts(host), host)
		if (&RegistryFlags{caFile: "ca.pem"}).trusts(host) {
			t.Errorf("%q: certificates were given, and it is not checked by them", host)
		}
		if got := (&RegistryFlags{cas: []string{"localhost:5000=ca.pem"}, all: true}).trusts(host); got == (host == "localhost:5000") {
			t.Errorf("%q, with certificates for localhost:5000: %t", host, got)
		}
		if !(&RegistryFlags{all: true}).trusts(host) {
			t.Errorf("%q: all are trusted", host)
		}
	}
}

// A bare name means an image of Docker Hub, but more often a folder in another place.
func TestBareName(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := (&SourceFlags{}).Read(ctx, "nope"); err == nil || !strings.HasPrefix(err.Error(), "there is no folder nope, and as an image: ") {
		t.Errorf("got %v", err)
	}
	if _, err := (&SourceFlags{Pull: true}).Read(ctx, "nope"); err == nil || strings.Contains(err.Error(), "folder") {
		t.Errorf("--pull: %v", err)
	}
}
