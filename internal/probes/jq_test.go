package probes

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
	"lockstep.run/lockstep/test/yamltest"
)

func TestJQRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		`$ENV.HOME`:                              "the variable $ENV",
		`env | .HOME`:                            "the function env",
		`[env]`:                                  "the function env",
		`(input)`:                                "the function input",
		`[inputs]`:                               "the function inputs",
		`(input_filename)`:                       "the function input_filename",
		`(debug)`:                                "the function debug",
		`(now)`:                                  "the function now",
		`.a | debug("x")`:                        "the function debug with 1 arguments",
		`import "a" as a; .x`:                    "a module",
		`include "a"; .x`:                        "a module",
		`module {}; .x`:                          "a module",
		`limit(1; .x)`:                           "the function limit",
		`[range(1e9)]`:                           "the function range",
		`def f: f; f`:                            "a function definition",
		`.a as $x | $x`:                          "a variable",
		`reduce .[] as $x (0; . + $x)`:           "the loop reduce",
		`foreach .[] as $x (0; . + $x)`:          "the loop foreach",
		`label $out | break $out`:                "a label",
		`.a = 1`:                                 "the assignment =",
		`.[1000000000] |= 1`:                     "the assignment |=",
		`.a += 1`:                                "the assignment +=",
		`setpath([1000000000]; 1)`:               "the function setpath",
		`"\(.a)"`:                                "string interpolation",
		`.["\(.a)"]`:                             "string interpolation",
		`{"\(.a)": 1}`:                           "string interpolation",
		`{$x}`:                                   "the variable $x",
		`@base64`:                                "the format @base64",
		`{a: now}`:                               "the function now",
		`.[now]`:                                 "the function now",
		`.[1:now]`:                               "the function now",
		`if now then 1 else 2 end`:               "the function now",
		`if 1 then 2 elif now then 2 else 2 end`: "the function now",
		`try now catch .`:                        "the function now",
		`try .a catch now`:                       "the function now",
		`-(now)`:                                 "the function now",
		`.a + now`:                               "the function now",
		`map(now)`:                               "the function now",
		`_charge`:                                "",
		`.a | _charge`:                           "the function _charge",
		`.a |`:                                   "neither a dotted path nor a jq expression",
		`.a..b`:                                  "neither a dotted path nor a jq expression",
		`$__loc__`:                               "the variable $__loc__",
		`halt_error | .`:                         "the function halt_error",
		`getpath(["a"])`:                         "the function getpath",
	}

	for text, want := range tests {
		_, err := newField(text)
		switch {
		case want == "":
			// A bare word is a dotted path.
			if err != nil {
				t.Errorf("newField(%q) = %v", text, err)
			}
		case err == nil || !strings.Contains(err.Error(), want):
			t.Errorf("newField(%q) = %v, want an error with %q", text, err, want)
		}
	}
}

// TestJQBounds evaluates small expressions that build large values. It measures allocations, so it
// must not run in parallel with other tests.
func TestJQBounds(t *testing.T) {
	repeat := func(text string, n int) string { return strings.TrimSuffix(strings.Repeat(text+"|", n), "|") }
	tests := map[string]struct {
		text string
		want error
	}{
		"string doubled":           {`"x"|` + repeat(".+.", 100), errJQWork},
		"string doubled in a try":  {`"x"|` + repeat("(try (.+.) catch .)", 90), errJQWork},
		"list doubled":             {repeat("[.,.]", 100), errJQWork},
		"list doubled and printed": {repeat("[.,.]", 100) + "|tojson", errJQWork},
		"object doubled":           {repeat("{a:.,b:.}", 100), errJQWork},
		"string repeated":          {`"x" * 1000000000`, nil},
		"number squared":           {`2|` + repeat(".*.", 100), errJQBits},
		"values doubled":           {repeat("(.,.)", 100) + "|select(false)", errJQSteps},
		"recursion in recursion":   {"[" + repeat("(..)", 100) + "]", errJQSteps},
		"any in any":               {`[` + strings.Repeat("any(..;", 40) + "false" + strings.Repeat(")", 40) + `]`, errJQSteps},
		"long text printed often":  {`[.big,.big,.big]|` + repeat("[.[]|tojson]", 40), errJQWork},
	}

	obj := yamltest.Decode(t, deployment)
	obj["big"] = strings.Repeat("x", 600_000)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			field, err := newField(test.text)
			require.NoError(t, err)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			_, _, err = field.read(newObject(obj))
			runtime.ReadMemStats(&after)
			// On a busy machine the evaluation can run out of time first.
			timedOut := errors.Is(err, errJQTime) && errors.Is(test.want, errJQSteps)
			if err == nil || (test.want != nil && !errors.Is(err, test.want) && !timedOut) {
				t.Errorf("read = %v, want %v", err, test.want)
			}
			if allocated := (after.TotalAlloc - before.TotalAlloc) >> 20; allocated > 256 {
				t.Errorf("allocated %d MiB", allocated)
			}
			if took := time.Since(start); took > 10*probeJQTime {
				t.Errorf("took %s", took)
			}
		})
	}
}

// TestJQMeaning checks that the guard does not change the meaning of expressions.
func TestJQMeaning(t *testing.T) {
	t.Parallel()
	tests := map[string]any{
		`.list | map(. + 1) | add`:             int64(9),
		`.list[1:] | length`:                   int64(2),
		`.list[-1]`:                            int64(3),
		`[.list[] | select(. > 1)]`:            []any{int64(2), int64(3)},
		`.text[1:3]`:                           "el",
		`{a: .text, "b": 1, (.text): 2, text}`: map[string]any{"a": "hello", "b": int64(1), "hello": int64(2), "text": "hello"},
		`{a: .list}.a[0]`:                      int64(1),
		`[.list[0], .list[1]][1]`:              int64(2),
		`.list[.list[0]]`:                      int64(2),
		`if .list[0] == 1 then "a" elif true then "b" else "c" end`:                 "a",
		`if .list[0] == 2 then "a" elif true then "b" end`:                          "b",
		`try (.text.a) catch "caught"`:                                              "caught",
		`.text.a? // "default"`:                                                     "default",
		`(.list[0] - .list[2]) * 2 / 4 % 5`:                                         int64(-1),
		`.list[0] / .list[1]`:                                                       0.5,
		`"12" | tonumber`:                                                           int64(12),
		`[.. | numbers] | length`:                                                   int64(5),
		`.map | to_entries | map(.key) | sort | first`:                              "x",
		`[.list | any(. == 2), all(. < 4)]`:                                         []any{true, true},
		`any(.list[]; . == 2) and (.text | startswith("he")) and (.map | has("x"))`: true,
		`-(.list[0])`:                    int64(-1),
		`.text | split("l") | last`:      "o",
		`[.list[] + .list[]] | length`:   int64(9),
		`[.list[] - .list[]] | unique`:   []any{int64(-2), int64(-1), int64(0), int64(1), int64(2)},
		`[.list[] - (1, 2)]`:             []any{int64(0), int64(1), int64(2), int64(-1), int64(0), int64(1)},
		`(.large)`:                       int64(9007199254740993),
		`"\"" + .text`:                   `"hello`,
		`first(.list[] | select(. > 1))`: int64(2),
		`.map["x"]["z"]`:                 int64(7),
	}

	obj := yamltest.Decode(t, `{list: [1, 2, 3], text: hello, map: {x: {z: 7}}, large: 9007199254740993}`)
	for text, want := range tests {
		compiled, err := compileJQ(text)
		if err != nil {
			t.Errorf("compile %s: %v", text, err)
			continue
		}
		got, _, err := compiled.read(newObject(obj))
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		require.Equal(t, want, got, text)
	}
}

func TestJQErrorNamesLimit(t *testing.T) {
	t.Parallel()
	got := mustCompile(t, entryFor(fieldsEqual(`"x"|.+.|.+.|.+.`+strings.Repeat("|.+.", 30), "x"))).Evaluate(yamltest.Decode(t, deployment))
	if want := fmt.Sprint(limits.ProbeJQWork); !strings.Contains(got.Message(), want) {
		t.Errorf("message = %q, want the limit %s in it", got.Message(), want)
	}
}

// during is a value that calls a function while it is read.
type during func()

func (d during) String() string { d(); return "" }

// Probes with the same text share a program, but evaluations do not wait for each other, and each
// has its own account.
func TestJQIsShared(t *testing.T) {
	t.Parallel()
	text := `[.items[] | tostring] | length`
	program, err := jqPrograms.get(text, compileJQ)
	require.NoError(t, err)
	evaluate := func(items ...any) (any, error) {
		value, _, err := program.read(&object{root: map[string]any{"items": items}})
		return value, err
	}

	_, err = evaluate(during(func() {
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = evaluate("other")
		}()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Error("an evaluation waits for the other")
		}
	}))

	require.NoError(t, err)
	large := strings.Repeat("x", limits.ProbeJQWork)
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			switch value, err := evaluate("a", []string{"b", large}[i%2]); {
			case i%2 == 0 && (err != nil || value != int64(2)):
				t.Errorf("a small one is %v, %v", value, err)
			case i%2 == 1 && !errors.Is(err, errBound):
				t.Errorf("a large one is %v, %v", value, err)
			}
		})
	}

	all.Wait()
}

func TestJQValue(t *testing.T) {
	t.Parallel()
	root := map[string]any{"a": int64(1), "list": []any{"x", "y"}}
	for _, tc := range []struct {
		text  string
		want  any
		found bool
		err   string
	}{
		{text: ".a", want: int64(1), found: true},
		{text: ".list | map(. + \"!\")", want: []any{"x!", "y!"}, found: true},
		{text: ".missing"},
		{text: "empty"},
		{text: "[][]"},
		{text: ".list[]", err: "more than one value"},
		{text: ".a | keys", err: "jq: "},
		{text: "def f: f; f", err: "not available here"},
		{text: "[limit(3; repeat(1))]", err: "not available here"},
		{text: ".list * 100000", err: "takes numbers"},
		{text: "[..] | [., .] | [., .] | [., .] | [., .] | [., .] | [., .] | [., .] | [., .] | [., .] | [., .] | [., .] | [., .] | [., .] | [., .] | [., .]", err: "it built more than"},
	} {
		compiled, err := CompileJQ(tc.text)
		var got any
		found := false
		if err == nil {
			got, found, err = compiled.Read(root)
		}
		if tc.err != "" {
			require.ErrorContains(t, err, tc.err, fmt.Sprintf("%s: %v", tc.text, got))
			continue
		}
		if err != nil || found != tc.found || !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %v, %t, %v", tc.text, got, found, err)
		}
	}
}
