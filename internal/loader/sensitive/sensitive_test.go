package sensitive

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

func newValues(t testing.TB, values ...string) *Values {
	t.Helper()
	v, err := New(values)
	require.NoError(t, err)
	return v
}

func TestIn(t *testing.T) {
	t.Parallel()
	const value = "S3cr3t<&\"'/ü word"
	v := newValues(t, value, "first line\n  second \"line\"\n", "short", "12345678")
	quoted, _ := json.Marshal(value)
	for _, test := range []struct {
		reason, text string
		want         bool
	}{
		{"verbatim", "x" + value + "y", true},
		{"without the line end", `first line` + "\n" + `  second "line"`, true},
		{"indented", "tls:\n    first line\n      second \"line\"\nrest", true},
		{"as JSON", `{"a":` + string(quoted) + `}`, true},
		{"quoted", strconv.Quote(value), true},
		{"quoted by YAML", "a: '" + strings.ReplaceAll(value, "'", "''") + "'", true},
		{"in a URL", "https://x/?a=" + url.QueryEscape(value), true},
		{"in a path", "https://x/" + url.PathEscape(value), true},
		{"in hex", hex.EncodeToString([]byte("a" + value)), true},
		{"a number", "port 123456789", true},
		{"wrapped", "S3cr3t<&\"\r\n    '/ü word", true},
		{"wrapped in JSON", `"S3cr3t<&\"\n  '/ü word"`, true},
		{"base64 of base64", base64.StdEncoding.EncodeToString([]byte("a: " + base64.StdEncoding.EncodeToString([]byte("b"+value+"c")))), true},
		{"base64, wrapped at 8 columns", wrapped(base64.StdEncoding.EncodeToString([]byte("x"+value)), 8, "\n  "), true},
		{"base64, wrapped in JSON", wrapped(base64.StdEncoding.EncodeToString([]byte("x"+value)), 8, `\n`), true},
		{"hex in upper case", strings.ToUpper(hex.EncodeToString([]byte(value))), true},
		{"behind a backslash", `DOMAIN\` + "12345678", true},
		{"words that are joined", "it is no S3cr3t<& word", false},
		{"a part", value[:len(value)-1], false},
		{"a short value", "short", false},
		{"something else", "nothing of it", false},
		{"nothing", "", false},
	} {
		if got, err := v.In(test.text); got != test.want || err != nil {
			t.Errorf("%s: %v, %v", test.reason, got, err)
		}
	}
}

// wrapped inserts a break after every columns bytes.
func wrapped(text string, columns int, with string) string {
	var b strings.Builder
	for i := range len(text) {
		if i > 0 && i%columns == 0 {
			b.WriteString(with)
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// A value is found in any of its encodings, and its pieces are redacted from any part of a text.
func TestProperties(t *testing.T) {
	t.Parallel()
	encoders := map[string]func([]byte) string{
		"plain": func(b []byte) string { return string(b) }, "base64": base64.StdEncoding.EncodeToString, "raw base64": base64.RawStdEncoding.EncodeToString,
		"URL base64": base64.URLEncoding.EncodeToString, "hex": hex.EncodeToString,
	}
	names := []string{"plain", "base64", "raw base64", "URL base64", "hex"}
	rapid.Check(t, func(rt *rapid.T) {
		value := rapid.StringMatching(`[!-~]([ -~]|\n){6,40}[!-~]`).Draw(rt, "value")
		v, err := New([]string{value, rapid.String().Draw(rt, "other")})
		if err != nil {
			rt.Fatal(err)
		}
		before, after := rapid.String().Draw(rt, "before"), rapid.String().Draw(rt, "after")
		name := rapid.SampledFrom(names).Draw(rt, "encoding")
		text := encoders[name]([]byte(before + value + after))
		if found, err := v.In(text); !found || err != nil {
			rt.Fatalf("%s is not found in %s: %v", value, text, err)
		}
		redacted := v.Redact(text)
		if found, _ := v.In(redacted); found {
			rt.Fatalf("%s is still in %s", value, redacted)
		}
		cut := rapid.IntRange(0, len(value)-limits.SensitiveLength).Draw(rt, "cut")
		piece := value[cut : cut+limits.SensitiveLength]
		if got := v.Redact("<" + piece + ">"); strings.Contains(got, piece) {
			rt.Fatalf("the piece %s is still in %s", piece, got)
		}
	})
}

func TestRedact(t *testing.T) {
	t.Parallel()
	v := newValues(t, "geheimes-wort", "kurz", "no", "kurz-2")
	for _, test := range []struct{ text, want string }{
		{"", ""},
		{"nothing", "nothing"},
		{`"geheimes-wort" is no number`, `"[redacted]" is no number`},
		{`cut: "eimes-wort...`, `cut: "[redacted]...`},
		{"geheimes-wortgeheimes-wort", "[redacted]"},
		{"a " + base64.StdEncoding.EncodeToString([]byte("geheimes-wort"))[:12] + "... b", "a [redacted]... b"},
		{"kurz kurzum kurz-2 (kurz)", "[redacted] kurzum [redacted] ([redacted])"},
	} {
		require.Equal(t, test.want, v.RedactWords(test.text), test.text)
	}

	require.Equal(t, "kurz", v.Redact("kurz"), "words are for RedactWords")

	long := strings.Repeat("x", messageBytes-5) + "geheimes-wort"
	if got := v.Redact(long); strings.Contains(got, "gehei") || len(got) > messageBytes+len(Mark) {
		t.Error("a value that is cut is shown:", got[len(got)-20:])
	}

	none := (*Values)(nil)
	if got := none.RedactWords("text"); got != "text" || !none.Empty() || none.Is("x") {
		t.Error("no values find something")
	}
}

func TestIs(t *testing.T) {
	t.Parallel()
	v := newValues(t, "ab", "12", "a longer value")
	for _, test := range []struct {
		value any
		want  bool
	}{
		{"ab", true},
		{"abc", false},
		{int64(12), true},
		{12.5, false},
		{"x a longer value x", true},
		{map[string]any{"k": []any{"z", "ab"}}, true},
		{map[string]any{"k": []any{"z"}}, false},
		{nil, false},
		{true, false},
	} {
		require.Equal(t, test.want, v.Is(test.value), test.value)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	if _, err := New([]string{strings.Repeat("x", limits.SensitiveBytes), "y"}); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("more than %d bytes", limits.SensitiveBytes)) {
		t.Error(err)
	}

	// The values and the text are very similar.
	alike := make([]string, 500)
	for i := range alike {
		alike[i] = strings.Repeat("a", 1000) + strconv.Itoa(1000+i)
	}

	v := newValues(t, alike...)
	if _, err := v.In(strings.Repeat("a", 4<<20)); !errors.Is(err, errTooAlike) {
		t.Error(err)
	}
}
