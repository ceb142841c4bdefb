package document

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"lockstep.run/lockstep/test/fuzzing"
)

// FuzzEach checks that each document of any file is either a JSON value within the limits, or a
// problem with a reason and a line of the file. Reading it twice gives the same result. A value
// that is written as JSON, which is YAML, reads back as itself.
//
// Code: document.go, split.go, convert.go, position.go
func FuzzEach(f *testing.F) {
	for _, text := range fuzzing.Examples(f, ".yaml") {
		f.Add(text)
	}

	for _, seed := range []string{
		"a: &a [*a]\n---\n<<: {a: 1}\n--- |\n x\n", "%YAML 1.1\n---\na: yes\nb: 0o7\nc: 1_000\nd: .inf\n...\n---\n? [x]\n: y\n",
		"a: !!binary aGk=\nb: !mine x\nc: 2001-01-01\nd: !!float 3\n", "\ufeffa: 'x'\n\"a\": 2\n", "a: &x {b: 1}\nc: {<<: [*x, {d: 2}]}\ne: *x\n",
		"- 1e400\n- -0\n- 18446744073709551616\n- 0x7fffffffffffffff\n", "{\"a\":\"\\ud83d\\ude00\",\"b\":[null,true,~]}",
	} {
		f.Add(seed)
	}

	f.Fuzz(func(t *testing.T, data string) {
		if len(data) > 16<<10 {
			return
		}
		values, problems := read(t, data)
		fuzzing.CheckViolations(t, problems)
		lines := linesOf(data)
		for _, p := range problems {
			if p.Line > lines+1 || p.Path != "f.yaml" {
				t.Fatalf("of %d lines: %v", lines, p)
			}
		}
		again, problemsAgain := read(t, data)
		if !reflect.DeepEqual(values, again) || !reflect.DeepEqual(problems, problemsAgain) {
			t.Fatalf("%v %v, then %v %v", values, problems, again, problemsAgain)
		}
		for _, v := range values {
			checkValue(t, v)
		}
	})
}

// linesOf counts lines as YAML does.
func linesOf(data string) int {
	n := 1
	for _, r := range data {
		switch r {
		case '\n', '\r', '\u0085', '\u2028', '\u2029':
			n++
		}
	}
	return n
}

// checkValue fails unless v is a JSON value that reads back as itself.
func checkValue(t *testing.T, v any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatalf("%v: %v", v, err)
	}
	if !isText(v) {
		return // there is no quoted form that YAML and JSON share
	}

	values, problems := read(t, string(text))
	if len(problems) > 0 && len(text) < 1000 {
		t.Fatalf("%s: %v", text, problems)
	}
	if len(problems) > 0 || len(values) != 1 {
		return // too long or too deep for one line of JSON
	}

	again, err := json.Marshal(values[0])
	var one, two any
	if err != nil || json.Unmarshal(text, &one) != nil || json.Unmarshal(again, &two) != nil || !reflect.DeepEqual(one, two) {
		t.Fatalf("%s is read as %s, %v", text, again, err)
	}
}

// isText reports whether YAML allows all characters of a value unescaped.
func isText(v any) bool {
	switch v := v.(type) {
	case string:
		return !strings.ContainsFunc(v, func(r rune) bool {
			return r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0xfeff || r == 0xfffe || r == 0xffff || r == utf8.RuneError
		})
	case map[string]any:
		for key, value := range v {
			if !isText(key) || !isText(value) {
				return false
			}
		}
	case []any:
		for _, value := range v {
			if !isText(value) {
				return false
			}
		}
	}

	return v != nil
}

// FuzzPath checks that any path leads to a line of the document.
//
// Code: position.go
func FuzzPath(f *testing.F) {
	f.Add("a:\n  b: [x, {c: 1}]\n", "a.b[1].c")
	f.Add("metadata:\n  labels:\n    example.com/x: \"1\"\n", "metadata.labels[example.com/x]")
	f.Add("- &a {b: 1}\n- *a\n", "[1].b")
	f.Fuzz(func(t *testing.T, data, path string) {
		if len(data)+len(path) > 4<<10 {
			return
		}
		_ = Each("f.yaml", []byte(data), func(d *Document) {
			first, last := d.line+1, linesOf(data)
			if line := d.Line(path); line < first || line > last {
				t.Fatalf("%q is line %d of %d to %d", path, line, first, last)
			}
			// The text at a path is part of the document.
			if raw, ok := d.Raw(path); ok && len(raw) > len(data) {
				t.Fatalf("%q is %q", path, raw)
			}
		})
	})
}
