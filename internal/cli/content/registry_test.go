package content

import "testing"

// Registries on this machine need no flag, as with docker and crane. All others do.
func TestTrusts(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"localhost": true, "localhost:5000": true, "127.0.0.1:5000": true, "127.9.9.9": true, "[::1]:5000": true, "[::1]": true,
		"registry.example.com": false, "10.0.0.1:5000": false, "localhost.example.com": false, "127.0.0.1.example.com:5000": false, "[fe80::1]:5000": false, "": false,
	} {
		if got := (&RegistryFlags{}).trusts(host); got != want {
			t.Errorf("%q: %t", host, got)
		}
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
