package loader

import (
	"context"
	"strings"
	"testing"

	"lockstep.run/lockstep/test/require"
)

// The examples of the repository are valid, and are rolled out as their
// READMEs have.
func TestExamples(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		folder  string
		opts    PreviewOptions
		warning string
		want    map[string]int
	}{
		{"format", PreviewOptions{}, "as a ClusterPackage", map[string]int{"phase-1": 4, "phase-2": 2, "phase-3": 3}},
		{"operator/cluster", PreviewOptions{}, "", map[string]int{"crds": 2, "rbac": 3, "deploy": 3, "config": 1}},
		{"operator/namespaced", PreviewOptions{}, "", map[string]int{"rbac": 3, "deploy": 3}},
		{"operator/namespaced", PreviewOptions{TestCase: "with-cache"}, "", map[string]int{"rbac": 3, "deploy": 3, "config": 1}},
	} {
		files, err := ReadFolder("../../examples/" + test.folder)
		require.NoError(t, err)
		warnings, err := Validate(context.Background(), files)
		if err != nil {
			t.Errorf("%s: %v", test.folder, err)
		}
		for _, w := range warnings {
			if test.warning == "" || !strings.Contains(w.String(), test.warning) {
				t.Errorf("%s: %s", test.folder, w)
			}
		}
		p, _, err := Preview(context.Background(), files, test.opts)
		if err != nil {
			t.Errorf("%s: %v", test.folder, err)
			continue
		}
		got := map[string]int{}
		for _, phase := range p.Phases {
			got[phase.Name] = len(phase.Objects)
		}
		require.Equal(t, test.want, got, test.folder)
	}
}
