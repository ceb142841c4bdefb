package loader

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lockstep.run/lockstep/test/require"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// What the example is rendered to is in the repository: a change of it is a
// change for every package that is installed.
func TestGolden(t *testing.T) {
	t.Parallel()
	files, err := ReadFolder("../../examples/operator/cluster")
	require.NoError(t, err)
	p, _, err := Preview(context.Background(), files, PreviewOptions{TestCase: "one-replica"})
	require.NoError(t, err)
	var got bytes.Buffer
	encoder := json.NewEncoder(&got)
	encoder.SetIndent("", "  ")
	require.NoError(t, encoder.Encode(map[string]any{"labels": p.Labels, "config": p.Config, "template": p.Template()}))
	const golden = "testdata/operator-cluster.json"
	if *update {
		require.NoError(t, os.WriteFile(golden, got.Bytes(), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("%s\nWhere the change is wanted, run: go test ./internal/loader -run TestGolden -update", diff)
	}
}
