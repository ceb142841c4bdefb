package harness

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lockstep.run/lockstep/test/require"
)

// Golden compares text with testdata/NAME.txt, or writes that file if LOCKSTEP_UPDATE is
// set. part selects the compared part of both; nil compares the whole texts.
func Golden(tb testing.TB, name, got string, part func(string) string) {
	tb.Helper()
	path := filepath.Join("testdata", name+".txt")
	if os.Getenv("LOCKSTEP_UPDATE") != "" {
		require.NoError(tb, os.MkdirAll("testdata", 0o755))
		require.NoError(tb, os.WriteFile(path, []byte(got), 0o644))
		return
	}
	raw, err := os.ReadFile(path)
	require.NoError(tb, err)
	want := string(raw)
	if part != nil {
		want, got = part(want), part(got)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		tb.Errorf("%s differs (-want +got):\n%s", path, diff)
	}
}
