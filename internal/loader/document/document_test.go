package document

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/violation"
	"lockstep.run/lockstep/test/require"
)

func read(t testing.TB, data string) (values []any, problems violation.Violations) {
	t.Helper()
	problems = Each("f.yaml", []byte(data), func(d *Document) { values = append(values, d.Value) })
	return values, problems
}

func TestEachSplits(t *testing.T) {
	t.Parallel()
	pem := "-----BEGIN X-----\nabc\n-----END X-----"
	for _, test := range []struct {
		reason, data string
		want         []any
	}{
		{"one document", "a: 1", []any{map[string]any{"a": int64(1)}}},
		{"two documents", "a: 1\n---\nb: 2\n", []any{map[string]any{"a": int64(1)}, map[string]any{"b": int64(2)}}},
		{"a comment, white space, CRLF or content can follow a marker",
			"---   \r\na: 1\r\n--- # next\nb: 2\n--- {c: 3}\n---\n",
			[]any{map[string]any{"a": int64(1)}, map[string]any{"b": int64(2)}, map[string]any{"c": int64(3)}}},
		{"dashes that something follows are content, also at the ends of the file",
			"a: |\n  " + strings.ReplaceAll(pem, "\n", "\n  ") + "\n", []any{map[string]any{"a": pem + "\n"}}},
		{"empty documents and comments do not count", "# hello\n---\n\n---\n# x\n---\na: 1\n---\nnull\n", []any{map[string]any{"a": int64(1)}}},
		{"a document can end explicitly", "a: 1\n...\n---\nb: 2\n...\n", []any{map[string]any{"a": int64(1)}, map[string]any{"b": int64(2)}}},
		{"directives belong to the next document", "%YAML 1.1\n---\na: 1\n", []any{map[string]any{"a": int64(1)}}},
		{"a byte order mark is not content", "\ufeffa: 1\n", []any{map[string]any{"a": int64(1)}}},
		{"a mapping of YAML in braces", "{a: 1,\n b: 2}\n", []any{map[string]any{"a": int64(1), "b": int64(2)}}},
		{"no documents", "", nil},
	} {
		values, problems := read(t, test.data)
		if diff := cmp.Diff(test.want, values); diff != "" || problems != nil {
			t.Errorf("%s: %s%v", test.reason, diff, problems)
		}
	}
}

func TestTextAfterTheEnd(t *testing.T) {
	t.Parallel()
	const text = "{\"a\": 1}\n{\"b\": 2}\n"
	if values, problems := read(t, text); len(values) > 0 || len(problems) != 1 || problems[0].Line != 1 {
		t.Errorf("got %v, %v", values, problems)
	}
	doubts := 0
	if problems := EachWithDoubts("f.yaml", []byte(text), func(d *Document) { doubts += len(d.Doubts) }); problems != nil || doubts != 1 {
		t.Errorf("got %v, %d doubts", problems, doubts)
	}
}

func TestEachTrimmed(t *testing.T) {
	t.Parallel()
	var texts []any
	EachTrimmed("f.yaml", []byte("a: |\n  x\n\n---\na: |\n  y\n"), func(d *Document) { texts = append(texts, d.Value.(map[string]any)["a"]) })
	require.Equal(t, []any{"x", "y"}, texts)
}

// A file has the meaning that Kubernetes' own YAML library gives it.
func TestScalarsMeanTheSameAsToKubernetes(t *testing.T) {
	t.Parallel()
	for _, scalar := range []string{
		"yes", "No", "ON", "off", "y", "N", "yEs", "true", "True", "FALSE", "~", "null", "", "'yes'", `"on"`,
		"1", "-3", "0777", "0o17", "0x1F", "0b101", "1_000", "9223372036854775807", "1.5", "1e3", "1.", ".5", "1e", "1.2.3",
		"2001-01-01", "2001-12-14t21:59:43.10-05:00", "12:30:45", "<<x", "=", "!!str 12", "!!int \"3\"", "!!float 3", "!!binary aGVsbG8=",
		"{a: b, 1: c, true: d, 1.5: e, no: f}", "[a, 1, {b: ~}]", "&x [1]", "|\n  text\n  more", ">-\n  text\n  more",
		"{<<: {a: 1, b: 2}, b: 3}", "{<<: [{a: 1}, {a: 2, b: 2}]}",
	} {
		data := "v: " + scalar + "\n"
		var want map[string]any
		j, err := yaml.YAMLToJSON([]byte(data))
		if err != nil {
			t.Fatalf("%s: %v", scalar, err)
		}
		require.NoError(t, json.Unmarshal(j, &want))
		values, problems := read(t, data)
		if len(values) != 1 || problems != nil {
			t.Errorf("%s: %v", scalar, problems)
			continue
		}
		j, _ = json.Marshal(values[0])
		var got map[string]any
		require.NoError(t, json.Unmarshal(j, &got))
		require.Equal(t, want, got, scalar)
	}
}

func TestEachRefuses(t *testing.T) {
	t.Parallel()
	nest := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'j'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", c-1), 9), ","))
	}

	for _, test := range []struct {
		name, data, want string
	}{
		{"syntax", "a: 1\nb: [\n", "Invalid YAML in f.yaml idx 0 line 2"},
		{"syntax in a later document, with its line in the file", "a: 1\n---\nb: 1\nc: {\n", "Invalid YAML in f.yaml idx 1 line 4"},
		{"duplicate key", "a: 1\nb: {x: 1,\n  x: 2}\n", "Invalid YAML in f.yaml idx 0 line 3: b.x: the key stands twice, first in line 2. Remove one of them."},
		{"duplicate after conversion", "1: a\n'1': b\n", "f.yaml idx 0 line 2: 1: the key stands twice"},
		{"own tag", "a: !secret x\n", "line 1: a: the tag !secret is not supported. Remove the tag."},
		{"own tag on a list", "a: !x [1]\n", "a: the tag !x is not supported"},
		{"not a number", "a: .nan\n", "a: .nan has no form in JSON"},
		{"it contradicts the tag", "a: !!int x\n", "a: the value is not a valid int"},
		{"null key", "~: 1\n", "a key is null. Put the key in quotes."},
		{"list as key", "[1]: 1\n", "a key is a list or a mapping"},
		{"merge of text", "<<: x\n", "<< has to name a mapping"},
		{"undefined alias", "a: *b\n", "unknown anchor 'b' referenced"},
		{"alias of itself", "a: &a [*a]\n", "Limit exceeded in f.yaml idx 0 line 1: a[0][0]: the alias *a is inside the value it refers to"},
		{"alias bomb", bomb, "Limit exceeded in f.yaml idx 0 line"},
		{"long text many times", "a: &a " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.Repeat("*a,", 20) + "]\n",
			fmt.Sprintf("more than %d bytes of text", limits.DocumentTextBytes)},
		{"deep nesting", nest(limits.DocumentDepth + 2), fmt.Sprintf("nests deeper than %d levels", limits.DocumentDepth)},
		{"very deep nesting", nest(100_000), "exceeded max depth"},
		{"large document", "a: " + strings.Repeat("x", limits.DocumentBytes), fmt.Sprintf("the limit is %d. Split it", limits.DocumentBytes)},
		{"many nodes", "[" + strings.Repeat("a,", limits.DocumentMarks) + "]", fmt.Sprintf("the limit is %d. Split it", limits.DocumentMarks)},
		{"many documents", strings.Repeat("---\n", limits.DocumentsPerFile+1), fmt.Sprintf("documents in one file; the limit is %d", limits.DocumentsPerFile)},
		{"not UTF-8", "a: \xff\n", "the file is not UTF-8 text"},
		{"control characters", "a: \x01\n", "control characters are not allowed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			values, problems := read(t, test.data)
			if len(problems) == 0 || !strings.Contains(problems.Error(), test.want) {
				t.Errorf("got %v and %d values, want %q", problems, len(values), test.want)
			}
			if d := time.Since(start); d > time.Minute {
				t.Errorf("took %v", d)
			}
		})
	}
}

// Within the limits, no structure takes long.
func TestEachIsBoundedInTime(t *testing.T) {
	t.Parallel()
	fill := func(unit string, marksPerUnit int) string {
		n := min(limits.DocumentMarks/marksPerUnit, limits.DocumentBytes/len(unit)) - 10
		return strings.Repeat(unit, n)
	}

	for name, data := range map[string]string{
		"flow list":      "[" + fill("a,", 1) + "]",
		"flow maps":      "[" + fill("{a: b},", 3) + "]",
		"dashes":         fill("- ", 1),
		"questions":      fill("? ", 1),
		"lines":          fill("a\n", 1),
		"comments":       fill("#\n", 1),
		"comment tail":   "a: b " + fill("#c\n", 1),
		"anchors":        "[" + fill("&a a,", 1) + "]",
		"aliases":        "a: &a b\nb: [" + fill("*a,", 1) + "]",
		"quotes":         "[" + fill(`"a",`, 1) + "]",
		"open quotes":    fill("'", 1),
		"block scalars":  fill("- |\n  a\n", 3),
		"nested maps":    strings.Repeat("{a: ", 9000),
		"keys":           "{" + fill("a b, ", 1) + "}",
		"distinct keys":  distinctKeys(100_000),
		"tags":           "[" + fill("!!str a,", 1) + "]",
		"percent":        fill("%a\n", 1),
		"colons":         fill("a:\n", 1),
		"indented lines": indented(2000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			read(t, data)
			if d := time.Since(start); d > time.Minute {
				t.Errorf("%d bytes took %v", len(data), d)
			} else {
				t.Logf("%d bytes took %v", len(data), d)
			}
		})
	}
}

func distinctKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "k%d: v\n", i)
	}
	return b.String()
}

func indented(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

func TestKeysThatAreBooleans(t *testing.T) {
	t.Parallel()
	var warnings violation.Violations
	Each("f.yaml", []byte("a:\n  true: 1\n  n: 2\n"), func(d *Document) { warnings = d.Warnings })
	const want = "Invalid YAML in f.yaml idx 0 line 3: a.false: the key n is a boolean in YAML 1.1; it is read as false. Put the key in quotes."
	require.Equal(t, want, warnings.Error(), warnings)
}

func TestLine(t *testing.T) {
	t.Parallel()
	data := "a: 1\n---\nspec:\n  phases:\n  - name: x\n  - name: y\n    class: z\n  on: true\nmeta:\n  a.b/c: 1\n"
	var doc *Document
	if problems := Each("f.yaml", []byte(data), func(d *Document) { doc = d }); problems != nil {
		t.Fatal(problems)
	}

	for path, want := range map[string]int{
		"": 3, "spec": 3, "spec.phases": 4, "spec.phases[1]": 6, "spec.phases[1].class": 7, "spec.phases[1].nope": 6,
		"spec.phases[7].name": 4, "meta[a.b/c]": 10, "nope": 3,
	} {
		require.Equal(t, want, doc.Line(path), fmt.Sprintf("%s: line", path))
	}

	if raw, ok := doc.Raw("spec.phases[0].name"); raw != "x" || !ok {
		t.Errorf("raw text %q, %v", raw, ok)
	}
}

// A document of some hundred kilobytes must not produce gigabytes of messages, or take the parser
// minutes.
func TestHostileDocuments(t *testing.T) {
	t.Parallel()
	nested := strings.Repeat("{? "+strings.Repeat("k", limits.DocumentPathBytes/10)+" : ", 12) + "1" + strings.Repeat("}", 12)
	var directives strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&directives, "%%TAG !a%d! tag:x,2000:\n", i)
	}

	path := fmt.Sprintf("the keys that lead to a field have more than %d bytes together", limits.DocumentPathBytes)
	for _, test := range []struct {
		reason, text, want string
		most               int
	}{
		{"a long key, which each problem below it would repeat", "{? " + strings.Repeat("k", 200_000) + " : {" + strings.Repeat("a: 1, ", 5000) + "}}", path, 1},
		{"long keys in each other", nested, path, 1},
		{"keys that are long enough", "? " + strings.Repeat("k", 2000) + "\n: 1\n", "", 0},
		{"more problems than are shown", "[" + strings.Repeat("!!x 1, ", 50_000) + "]", "the tag !!x is not supported", limits.Violations + 1},
		{"keys that stand twice, more often than is shown", strings.Repeat("a: 1\n", 50_000), "the key stands twice", limits.Violations + 1},
		{"directives, which are compared with all earlier ones", directives.String() + "---\na: b\n", fmt.Sprintf("more than %d directives", limits.DocumentDirectives), 1},
		{"a percent sign in a document", "a: |\n" + strings.Repeat("  %x\n", 1000), "", 0},
	} {
		problems := Each("f.yaml", []byte(test.text), func(*Document) {})
		if len(problems) > test.most || test.want == "" != (len(problems) == 0) || test.want != "" && !strings.Contains(problems[0].String(), test.want) {
			t.Errorf("%s: %d problems: %.300s", test.reason, len(problems), problems[:min(1, len(problems))].Error())
		}
	}
}
