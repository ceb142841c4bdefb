package terminal_test

import (
	"bytes"
	"testing"

	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/test/require"
)

func TestTruncate(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		text  string
		width int
		want  string
	}{
		{"short", 5, "short"},
		{"longer", 5, "long…"},
		{"表示が広い", 3, "表示…"},
		{"any", 1, "…"},
	} {
		if got := terminal.Truncate(tc.text, tc.width); got != tc.want {
			t.Errorf("Truncate(%q, %d) = %q, want %q", tc.text, tc.width, got, tc.want)
		}
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	got := terminal.Table([][]string{{"A", "LONG"}, {"bbb", "c"}, {"d"}})
	require.Equal(t, []string{"A    LONG", "bbb  c", "d"}, got)
}

func TestStylesForPipe(t *testing.T) {
	t.Parallel()
	if got := terminal.StylesFor(&bytes.Buffer{}).Bad("text"); got != "text" {
		t.Errorf("colour in a pipe: %q", got)
	}
	red := terminal.Colored().Bad
	if got := red("text"); got != "\x1b[31mtext\x1b[m" || red("") != "" {
		t.Errorf("got %q", got)
	}
	if got := terminal.Pad(red("ab"), 3); got != red("ab")+" " {
		t.Errorf("a style counts as text: %q", got)
	}
}
