package conformance

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"lockstep.run/lockstep/test/require"
)

// An unknown field of a row is a failure, as is a row that is listed as different but no longer
// differs.
func TestJudge(t *testing.T) {
	t.Parallel()
	run := Of(func(_ *testing.T, in struct {
		Size  int
		Known bool
	}, want *Expectation,
	) {
		if in.Known {
			want.Otherwise(LongConstraint, "double")
		}
		want.Is("double", 2*in.Size)
		want.Fails("error", in.Size < 0)
		want.Set("names", []string{"b", "a"})
		want.Has("map", map[string]any{"a": 1, "b": []string{"x"}})
		Holds(want, "object", func(o *struct{ Name string }) bool { return o == nil || o.Name == "n" })
	})

	for _, tc := range []struct {
		reason, name, tag, dialect, input, expected string
		own                                         bool
		because, problem                            string
	}{
		{reason: "as expected", input: `{"size": 2}`, expected: `{"double": 4, "error": null, "names": ["a", "b"], "map": {"b": ["x"]}, "object": {"name": "n"}}`},
		{reason: "a kind of an error is one", input: `{"size": -2}`, expected: `{"double": -4, "error": "negative"}`},
		{reason: "another outcome", tag: "core", input: `{"size": 2}`, expected: `{"double": 5}`, problem: "double is 4"},
		{reason: "another order of a list", tag: "core", input: `{}`, expected: `{"map": {"b": ["x", "y"]}}`, problem: "map is"},
		{reason: "no error", tag: "core", input: `{"size": 2}`, expected: `{"error": "negative"}`, problem: "error is false"},
		{reason: "an unknown input", input: `{"size": 2, "override": 1}`, expected: `{}`, problem: `unknown field "override"`},
		{reason: "an unknown expectation", input: `{"size": 2}`, expected: `{"double": 4, "visibleMarkers": []}`, problem: "nothing compares visibleMarkers"},
		{reason: "an unknown field of an expectation", tag: "core", input: `{}`, expected: `{"object": {"name": "n", "more": 1}}`, problem: `unknown field "more"`},
		{reason: "another dialect", dialect: "other", input: `{"size": 2}`, expected: `{"double": 5}`, because: "differs in the dialect other"},
		{reason: "core is of all dialects", dialect: "other", tag: "core", input: `{"size": 2}`, expected: `{"double": 5}`, problem: "double is 4"},
		{reason: "an open decision", tag: "future", dialect: "other", input: `{"size": 2}`, expected: `{"double": 5}`, because: "differs in the dialect other"},
		{reason: "different on purpose", name: "constraint-long", input: `{"size": 2, "known": true}`, expected: `{"double": 5}`, own: true, because: "a long constraint"},
		{reason: "not different any more", name: "constraint-long", input: `{"size": 2, "known": true}`, expected: `{"double": 4}`, problem: "listed among those that differ"},
		{reason: "of that kind, elsewhere", input: `{"size": 2, "known": true}`, expected: `{"double": 5}`, because: "a long constraint"},
		{reason: "of that kind and not listed, here", input: `{"size": 2, "known": true}`, expected: `{"double": 5}`, own: true, problem: "a long constraint"},
		{reason: "different in another field", tag: "core", input: `{"size": 2, "known": true}`, expected: `{"double": 5, "error": true}`, problem: "error is false"},
	} {
		r := Row{Name: tc.name, Tags: []string{tc.tag}, Dialect: tc.dialect, Input: json.RawMessage(tc.input), Expected: json.RawMessage(tc.expected)}
		because, problem := Suite{}.judge(r, run(t, r), tc.own)
		if because != tc.because || (problem == "") != (tc.problem == "") || !strings.Contains(problem, tc.problem) {
			t.Errorf("%s: because %q, problem %q", tc.reason, because, problem)
		}
	}
}

// Each difference is in the documentation and shown by a row of testdata, and each operation has
// rows there.
func TestDifferencesAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/design/differences.md")
	require.NoError(t, err)
	byOp := rowsByOp(t)
	for difference, names := range listed {
		if !strings.Contains(string(page), "\n| "+string(difference)+" |") {
			t.Errorf("docs/design/differences.md has no line on %s", difference)
		}
		shown := false
		for _, rows := range byOp {
			shown = shown || slices.ContainsFunc(rows, func(r Row) bool { return slices.Contains(names, r.Name) })
		}
		if !shown {
			t.Errorf("no row of testdata shows: %s", difference)
		}
	}

	for op := range runners {
		if len(byOp[op]) == 0 {
			t.Errorf("testdata has no row of %s", op)
		}
	}
}
