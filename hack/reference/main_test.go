package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lockstep.run/lockstep/test/require"
)

// The pages match the present code.
func TestPagesAreCurrent(t *testing.T) {
	all, err := pages("../..")
	require.NoError(t, err)
	for name, want := range all {
		got, err := os.ReadFile(filepath.Join("../../docs/reference", name))
		if err != nil || string(got) != want {
			t.Errorf("docs/reference/%s is stale, run ./task generate: %v\n%s", name, err, cmp.Diff(string(got), want))
		}
		if rows := strings.Count(want, "\n| `"); rows < 25 && name != "../alerts.md" {
			t.Errorf("%s has %d rows: the code is not read as it is written", name, rows)
		}
		if strings.Contains(want, "| Reason") && strings.Contains(want, "| ConditionReady") {
			t.Errorf("%s has names of Go", name)
		}
		heading := ""
		for line := range strings.Lines(want) {
			if text, found := strings.CutPrefix(line, "## "); found {
				heading = text
			}
			cells := strings.Split(line, " | ")
			if len(cells) != 3 || !strings.HasPrefix(line, "| `") {
				continue
			}
			limit := strings.Trim(cells[0], "| `") + " "
			if strings.HasPrefix(cells[2], limit) || strings.HasPrefix(heading, limit) && !strings.HasPrefix(heading, limit+"of ") {
				t.Errorf("%s has the name of a limit twice: %s%s", name, heading, line)
			}
			heading = "" // its words can be the names of further limits
		}
	}
}
