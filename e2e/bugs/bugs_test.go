package main

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"lockstep.run/lockstep/e2e/sandbox/binary"
	"lockstep.run/lockstep/test/require"
)

// repository returns the folder of the module, and its bugs.
func repository(t *testing.T) (string, []bug) {
	t.Helper()
	root, err := binary.Repository(".")
	require.NoError(t, err)
	bugs, err := readBugs(filepath.Join(root, "e2e", "bugs"))
	require.NoError(t, err)
	return root, bugs
}

// Every invariant has a bug that a test on a real API server notices. The bug's number starts
// with the invariant's. The simulation also has to notice bugs in the engine's rules.
func TestEveryInvariantHasABug(t *testing.T) {
	t.Parallel()
	_, bugs := repository(t)
	simulated, onServer := map[int]bool{}, map[int]bool{}
	for _, b := range bugs {
		if want := byte('0' + b.Invariant%10); b.Number[0] != want {
			t.Errorf("%s is about invariant %d: its number has to start with %c", b, b.Invariant, want)
		}
		for _, c := range b.Checks {
			onServer[b.Invariant] = onServer[b.Invariant] || c.level() != unit
			simulated[b.Invariant] = simulated[b.Invariant] || c.test() == "TestEngine"
		}
	}
	for invariant := 1; invariant <= 11; invariant++ {
		if !onServer[invariant] {
			t.Errorf("no bug of invariant %d is noticed on an API server", invariant)
		}
		if invariant <= 6 && !simulated[invariant] {
			t.Errorf("no bug of invariant %d is noticed by the simulation", invariant)
		}
	}
}

// Each patch applies to the current sources.
func TestBugsApply(t *testing.T) {
	t.Parallel()
	root, bugs := repository(t)
	for _, b := range bugs {
		if _, err := apply(t.Context(), root, b.Path, t.TempDir()); err != nil {
			t.Errorf("%s: rewrite it as described in doc.go: %v", b, err)
		}
	}
}

// A bug is noticed. It takes compiling a part of the engine again: ./task bugs plays all of them.
func TestBugIsNoticed(t *testing.T) {
	t.Parallel()
	root, bugs := repository(t)
	tr := &trial{root: root, scratch: t.TempDir()}
	overlay, err := apply(t.Context(), root, bugs[0].Path, tr.scratch)
	if err != nil {
		t.Fatalf("rewrite it as described in doc.go: %v", err)
	}
	checks := slices.DeleteFunc(slices.Clone(bugs[0].Checks), func(c check) bool { return c.level() != unit })
	if len(checks) == 0 {
		t.Errorf("%s names no test that needs no API server", bugs[0])
	}
	for _, c := range checks {
		if out := tr.catch(t.Context(), c, overlay); out.Verdict != caught {
			t.Errorf("%s: %s; expected: %s\n%s", c, out.Verdict, c.Says, tail(out.Output))
		}
	}
}

func TestReadBug(t *testing.T) {
	t.Parallel()
	const diff = "--- a/x\n+++ b/x\n"
	for _, tc := range []struct {
		name, header, wrong string
		want                bug
	}{
		{
			name: "complete", header: "# Bug: one\n#   two\n# Invariant: 3\n# Caught by: A=b go test ./e2e/x -run ^TestX$\n# Says: b\n# Caught by: go test ./internal/x -run ^TestA$ -f=1\n# Says: a: c\n",
			want: bug{Number: "31", Name: "name", What: "one two", Invariant: 3, Checks: []check{
				{Args: []string{"./internal/x", "-run", "^TestA$", "-f=1"}, Says: regexp.MustCompile("a: c")},
				{Args: []string{"./e2e/x", "-run", "^TestX$"}, Env: []string{"A=b"}, Says: regexp.MustCompile("b")},
			}},
		},
		{name: "nothing", header: "", wrong: "does not describe the bug"},
		{name: "no invariant", header: "# Bug: x\n", wrong: "no invariant"},
		{name: "an invariant that there is not", header: "# Bug: x\n# Invariant: 12\n", wrong: "no invariant"},
		{name: "no test", header: "# Bug: x\n# Invariant: 1\n", wrong: "no test"},
		{name: "another command", header: "# Bug: x\n# Invariant: 1\n# Caught by: make\n", wrong: "not a go test command"},
		{name: "all tests of a package", header: "# Bug: x\n# Invariant: 1\n# Caught by: go test ./x\n# Says: y\n", wrong: "does not name a single test"},
		{name: "any output", header: "# Bug: x\n# Invariant: 1\n# Caught by: go test ./x -run X\n# Says: .*\n", wrong: "does not match the output"},
		{name: "no output", header: "# Bug: x\n# Invariant: 1\n# Caught by: go test ./x -run X\n", wrong: "does not match the output"},
		{name: "output of no test", header: "# Bug: x\n# Says: y\n", wrong: "has to follow an entry Caught by"},
		{name: "an unknown entry", header: "# Bug: x\n# Author: y\n", wrong: `no entry "Author"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := parseBug("31-name.patch", strings.NewReader(tc.header+diff))
			if tc.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wrong) {
					t.Errorf("got %v, want an error with %q", err, tc.wrong)
				}
				return
			}
			same := cmp.Comparer(func(a, b *regexp.Regexp) bool { return a.String() == b.String() })
			if diff := cmp.Diff(tc.want, got, same, cmpopts.EquateEmpty()); err != nil || diff != "" {
				t.Error(err, diff)
			}
		})
	}
}
