// Package golden compares the output of a test with a file in its testdata.
package golden

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"lockstep.run/lockstep/test/require"
)

// temporary matches a test's folder, which differs from run to run.
var temporary = regexp.MustCompile(regexp.QuoteMeta(os.TempDir()) + `/[^" ]*/\d+`)

// transition matches the time of a condition, which tests set to the present time.
var transition = regexp.MustCompile(`"lastTransitionTime": "[^"]*"`)

// JSON compares a command's output with -o json, which programs rely on, with
// testdata/json/COMMAND.json. LOCKSTEP_UPDATE=1 writes the file.
func JSON(t *testing.T, command string, printed any) {
	t.Helper()
	if text, is := printed.(string); is {
		printed = json.RawMessage(text)
	}

	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	require.NoError(t, encoder.Encode(printed))
	got := transition.ReplaceAllString(temporary.ReplaceAllString(b.String(), "FOLDER"), `"lastTransitionTime": "TIME"`)
	Text(t, filepath.Join("testdata", "json", command+".json"), got)
}

// Text compares a text with a file. LOCKSTEP_UPDATE=1 writes the file.
func Text(t *testing.T, path, got string) {
	t.Helper()
	if os.Getenv("LOCKSTEP_UPDATE") != "" {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got, path+", which LOCKSTEP_UPDATE=1 rewrites")
}
