package versions_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// row is one case of testdata/conformance, whose README.md describes the operations.
type row struct {
	Name        string
	Description string
	Op          string
	Dialect     string
	Model       string
	Tags        []string
	Input       json.RawMessage
	Expected    json.RawMessage
}

// binding reports whether a row holds for this project, whatever dialect it was observed in.
func (r row) binding() bool {
	switch {
	case slices.Contains(r.Tags, "future"):
		return false
	case slices.Contains(r.Tags, "core"):
		return true
	}
	return slices.Contains([]string{"", "none", "masterminds", "crossplane"}, r.Dialect)
}

// notApplicable is the reason why a row says nothing about this project.
type notApplicable string

// operations return what differs from the expectation, or why the row does not apply.
var operations = map[string]func(t *testing.T, r row) (difference string, because notApplicable){
	"select": selected, "match": matched, "parse-constraint": parsedConstraint, "prerelease-filter": filtered, "order": ordered,
	"compare": compared, "parse-version": parsedVersions, "package-install-select": installSelected, "downgrade-gate": downgraded,
	"watch-enqueue": enqueued, "dependency-install-select": tagSelected, "reference-resolve": referenceResolved,
	"validate": validated, "repository-revision": revised, "global-list": listed, "repository-filter": repositoryFiltered,
}

// elsewhere are operations that are no part of choosing versions.
var elsewhere = map[string]notApplicable{
	"wildcard-expansion": "the expansion is internal to the parser of another dialect; its outcome is in select and match",
	"sync-timer":         "the pauses after failures are those of the controller of repositories",
	"sync-due":           "the pauses after failures are those of the controller of repositories",
	"values-merge":       "the order of values is that of configFrom, which names single keys",
	"extension-order":    "patches are a list, and not annotations",
}

// TestConformance runs the rows of testdata/conformance, or those of the folder CONFORMANCE_DIR.
func TestConformance(t *testing.T) {
	dir := cmp.Or(os.Getenv("CONFORMANCE_DIR"), filepath.Join("testdata", "conformance"))
	byOp := rowsByOp(t, dir)
	if len(byOp) == 0 {
		t.Fatalf("there are no rows in %s", dir)
	}
	total := tally{}
	for _, op := range slices.Sorted(maps.Keys(byOp)) {
		t.Run(op, func(t *testing.T) {
			sum := tally{reasons: map[notApplicable]int{}}
			for _, r := range byOp[op] {
				var passed bool
				var because notApplicable
				t.Run(r.Name, func(t *testing.T) { passed, because = judge(t, r) })
				sum.add(passed, because)
			}
			t.Log(sum)
			total.run, total.passed, total.skipped = total.run+sum.run, total.passed+sum.passed, total.skipped+sum.skipped
		})
	}
	t.Log("all: ", total)
}

type tally struct {
	run, passed, skipped int
	reasons              map[notApplicable]int
}

func (s *tally) add(passed bool, because notApplicable) {
	switch {
	case because != "":
		s.skipped++
		s.reasons[because]++
	case passed:
		s.run, s.passed = s.run+1, s.passed+1
	default:
		s.run++
	}
}

func (s tally) String() string {
	text := fmt.Sprintf("run %d, passed %d, not applicable %d", s.run, s.passed, s.skipped)
	for _, reason := range slices.Sorted(maps.Keys(s.reasons)) {
		text += fmt.Sprintf("\n  %d: %s", s.reasons[reason], reason)
	}
	return text
}

// judge runs one row. A row of another dialect that comes out differently here does not apply.
func judge(t *testing.T, r row) (passed bool, because notApplicable) {
	operation, ok := operations[r.Op]
	if !ok {
		return false, cmp.Or(elsewhere[r.Op], "is no part of choosing versions")
	}
	difference, because := operation(t, r)
	switch {
	case because != "":
		return false, because
	case difference == "":
		return true, ""
	case !r.binding():
		t.Logf("%s: %s", r.Description, difference)
		return false, notApplicable("differs in the dialect " + r.Dialect)
	}
	t.Errorf("%s: %s\ninput %s\nexpected %s", r.Description, difference, r.Input, r.Expected)
	return false, ""
}

func rowsByOp(t *testing.T, dir string) map[string][]row {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	byOp := map[string][]row{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var rows []row
		if err := json.Unmarshal(data, &rows); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, r := range rows {
			byOp[r.Op] = append(byOp[r.Op], r)
		}
	}
	return byOp
}

// decode reads input and expectation.
func decode[I, E any](t *testing.T, r row) (input I, expected E) {
	t.Helper()
	if err := json.Unmarshal(r.Input, &input); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(r.Expected, &expected); err != nil {
		t.Fatal(err)
	}
	return input, expected
}

// states reports whether a row has an expectation about a field.
func (r row) states(field string) bool {
	var expected map[string]json.RawMessage
	return json.Unmarshal(r.Expected, &expected) == nil && expected[field] != nil
}

// differences collects what differs.
type differences []string

func (d *differences) unless(equal bool, format string, args ...any) {
	if !equal {
		*d = append(*d, fmt.Sprintf(format, args...))
	}
}

func (d differences) String() string { return strings.Join(d, "; ") }
