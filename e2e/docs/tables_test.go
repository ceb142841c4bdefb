package docs_test

import (
	"os"
	"strings"
	"testing"

	"lockstep.run/lockstep/internal/loader/render"
	"lockstep.run/lockstep/test/require"
)

// tables stand between "<!-- name -->" and "<!-- /name -->" of a page.
var tables = []struct {
	page, name string
	text       func() string
}{
	{"templates.md", "functions", functionTable},
}

// The tables that are made from the code are up to date.
func TestTables(t *testing.T) {
	for _, table := range tables {
		path := folder + "/" + table.page
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		begin, end := "<!-- "+table.name+" -->\n", "<!-- /"+table.name+" -->"
		before, rest, ok := strings.Cut(string(data), begin)
		got, after, closed := strings.Cut(rest, end)
		if !ok || !closed {
			t.Errorf("%s has no place for the table %s", table.page, table.name)
			continue
		}
		want := table.text()
		if got == want {
			continue
		}
		if os.Getenv("LOCKSTEP_UPDATE") == "" {
			t.Errorf("%s: the table %s is stale; LOCKSTEP_UPDATE=1 rewrites it. It has to be:\n%s", table.page, table.name, want)
			continue
		}
		require.NoError(t, os.WriteFile(path, []byte(before+begin+want+end+after), 0o644))
	}
}

func functionTable() string { return "`" + strings.Join(render.Functions(), "`, `") + "`.\n" }
