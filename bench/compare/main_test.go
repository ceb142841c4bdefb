package main

import (
	"testing"

	"lockstep.run/lockstep/test/require"
)

func TestTable(t *testing.T) {
	t.Parallel()
	tools := []tool{{name: "A"}, {name: "B"}}
	figures := []map[string]figure{
		{"install": {requests: 65, seconds: 0.2}, "nothing to do": {}, "delete": {requests: 7, seconds: 1.25}},
		{"install": {requests: 101, seconds: 12}, "1 object drifted": {note: "never"}},
	}

	want := `
| 50 objects | A: requests | seconds | B: requests | seconds |
|---|---:|---:|---:|---:|
| install | 65 | 0.2 | 101 | 12 |
| upgrade of 1 object | – | – | – | – |
| nothing to do | 0 | 0 | – | – |
| 1 object drifted | – | – | 0 | never |
| delete | 7 | 1.2 | – | – |
`

	require.Equal(t, want, table(50, tools, figures), "the table")
}
