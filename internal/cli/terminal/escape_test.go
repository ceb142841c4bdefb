package terminal_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/test/require"
)

func TestLine(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain text, ümlaut €":     "plain text, ümlaut €",
		"two\nlines\tand a tab":    "two lines and a tab",
		"\x1b[2Jclear\x07":         `\u001b[2Jclear\u0007`,
		"c1 \u009b31m":             `c1 \u009b31m`,
		"turn\u202earound\u2066":   `turn\u202earound\u2066`,
		"carriage\rreturn\x08\x7f": `carriage\u000dreturn\u0008\u007f`,
		"broken \xff\xfe":          `broken \xff\xfe`,
		"replaced �":               "replaced �",
		"zero\u200bwidth\ufeff":    `zero\u200bwidth\ufeff`,
		"tag \U000e0041":           `tag \U000e0041`,
		"line\u2028separator":      `line\u2028separator`,
	} {
		require.Equal(t, want, terminal.Line(in), fmt.Sprintf("Line(%q)", in))
	}
	if got, want := terminal.Text("a\n\tb\x1b"), "a\n\tb"+`\u001b`; got != want {
		t.Errorf("Text = %q, want %q", got, want)
	}
}

// For any input, the output contains no control sequences, and clean text is unchanged.
//
// Code: escape.go, encode.go
func FuzzLine(f *testing.F) {
	for _, seed := range []string{"", "text", "\x1b]0;title\x07", "\u202e", "\xff", "a\nb", "\U000e0041", "\u009b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		out := terminal.Line(in)
		if !utf8.ValidString(out) {
			t.Fatalf("Line(%q) is not UTF-8: %q", in, out)
		}
		for _, r := range out {
			if r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0x202e || r == 0x2028 {
				t.Fatalf("Line(%q) holds %U: %q", in, r, out)
			}
		}
		if again := terminal.Line(out); again != out {
			t.Fatalf("Line is not stable: %q, then %q", out, again)
		}
		for name, write := range map[string]func(*bytes.Buffer) error{
			"JSON": func(b *bytes.Buffer) error { return terminal.WriteJSON(b, map[string]string{"k": in}) },
			"YAML": func(b *bytes.Buffer) error { return terminal.WriteYAML(b, map[string]string{"k": in}) },
		} {
			var b bytes.Buffer
			if err := write(&b); err != nil {
				t.Fatalf("%s of %q: %v", name, in, err)
			}
			if safe := terminal.Text(b.String()); safe != b.String() {
				t.Fatalf("%s of %q is not safe: %q", name, in, b.String())
			}
			var back map[string]string
			parse := json.Unmarshal
			if name == "YAML" {
				parse = yaml.Unmarshal
			}
			if err := parse(b.Bytes(), &back); err != nil {
				t.Fatalf("%s of %q does not parse: %v\n%s", name, in, err, b.String())
			}
			if want := strings.ToValidUTF8(in, "\ufffd"); strings.ToValidUTF8(back["k"], "\ufffd") != want && utf8.ValidString(in) {
				t.Fatalf("%s of %q became %q", name, in, back["k"])
			}
		}
	})
}

func TestWriteYAML(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	value := struct {
		B string   `json:"b"`
		A []string `json:"a"`
		N int      `json:"count"`
	}{"two\nlines", []string{"x", "1", "yes"}, 9007199254740993}
	require.NoError(t, terminal.WriteYAML(&b, value))
	require.Equal(t, "a:\n- x\n- \"1\"\n- \"yes\"\nb: |-\n  two\n  lines\ncount: 9007199254740993\n", b.String())

	b.Reset()
	require.NoError(t, terminal.WriteYAML(&b, map[string]string{"a": "\u202ey"}))
	require.Equal(t, "{\n  \"a\": \"\\u202ey\"\n}\n", b.String())
}

func TestTable(t *testing.T) {
	t.Parallel()
	got := terminal.Table([][]string{{"A", "LONG"}, {"bbb", "c"}, {"d"}})
	require.Equal(t, []string{"A    LONG", "bbb  c", "d"}, got)
}

func TestStylesForPipe(t *testing.T) {
	t.Parallel()
	require.Equal(t, "text", terminal.StylesFor(&bytes.Buffer{}).Bad("text"), "colour in a pipe")
	red := terminal.Colored().Bad
	if got := red("text"); got != "\x1b[31mtext\x1b[m" || red("") != "" {
		t.Errorf("got %q", got)
	}
	require.Equal(t, red("ab")+" ", terminal.Pad(red("ab"), 3), "a style counts as text")
}
