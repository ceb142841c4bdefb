package install

import (
	"strings"
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/progress"
)

func TestUnexpectedImage(t *testing.T) {
	t.Parallel()
	target := progress.Target{Scope: corev1alpha1.ScopeCluster, Name: "web"}
	for reason, tc := range map[string]struct{ old, wanted, want string }{
		"the next release":        {"example.com/web:v1", "example.com/web:v2", ""},
		"by digest":               {"example.com/web:v1", "example.com/web@sha256:" + strings.Repeat("a", 64), ""},
		"the same, written out":   {"web:latest", "docker.io/library/web", ""},
		"a forgotten registry":    {"example.com/web:v1", "web", "is installed from example.com/web:v1 and would change to another repository, index.docker.io/library/web:latest"},
		"another registry":        {"example.com/web:v1", "example.org/web:v1", "another repository, example.org/web:v1"},
		"a forgotten tag":         {"example.com/web:v1", "example.com/web", "would change to example.com/web:latest, because example.com/web names no tag"},
		"a port is not a tag":     {"example.com:5000/web:v1", "example.com:5000/web", "names no tag"},
		"chosen from a catalogue": {"", "example.com/web:v1", "does not name its image"},
	} {
		got := unexpectedImage(target, tc.old, tc.wanted)
		if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q", reason, got)
		}
	}
}
