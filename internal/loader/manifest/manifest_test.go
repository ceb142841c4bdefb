package manifest

import (
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"
)

func TestParseRange(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text, version string
		want          bool
	}{
		{">=1.29 && <2", "1.30.0", true}, {">=1.29 && <2", "2.0.0", false}, {"==1.2.3", "1.2.3", true}, {"!1.2.3", "1.2.3", false},
		{"!=1.2.3", "1.2.4", true}, {">=1, !1.5.0", "1.5.0", false}, {"1.x || 3.x", "3.4.5", true},
	} {
		c, err := parseRange(test.text)
		if err != nil || c.Check(semver.MustParse(test.version)) != test.want {
			t.Errorf("%s on %s: %v", test.text, test.version, err)
		}
	}
	for _, bad := range []string{"", "abc", strings.Repeat(">1,", 10_000)} {
		if _, err := parseRange(bad); err == nil && bad != "" {
			t.Errorf("%.20s is accepted", bad)
		}
	}
}

func TestPinned(t *testing.T) {
	t.Parallel()
	hex := strings.Repeat("a", 64)
	for _, test := range []struct{ image, digest, want string }{
		{"nginx:1.2", "sha256:" + hex, "index.docker.io/library/nginx@sha256:" + hex},
		{"quay.io/x/y", hex, "quay.io/x/y@sha256:" + hex},
		{"quay.io/x/y@sha256:" + strings.Repeat("b", 64), "sha256:" + hex, "quay.io/x/y@sha256:" + hex},
		{"UPPER", "sha256:" + hex, ""}, {"nginx", "x", ""},
	} {
		if got, err := pinned(test.image, test.digest); got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%s: %q, %v", test.image, got, err)
		}
	}
}
