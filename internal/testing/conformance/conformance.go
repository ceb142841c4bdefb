// Package conformance runs cases that are data: rows of an operation, its input and what is expected. A row with the tag
// core has to come out as expected, as has one of the dialects that a suite speaks; another that comes out differently does
// not apply. Rows with the tag future describe what is not decided yet.
package conformance

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

// Row is one case.
type Row struct {
	Name        string
	Description string
	Op          string
	Dialect     string
	Model       string
	Tags        []string
	Input       json.RawMessage
	Expected    json.RawMessage
}

// NotApplicable is the reason why a row says nothing about what is tested.
type NotApplicable string

// Suite is what runs rows.
type Suite struct {
	// Dir has the rows; by default testdata/conformance.
	Dir string
	// Operations return what differs from the expectation, or why the row does not apply.
	Operations map[string]func(t *testing.T, r Row) (difference string, because NotApplicable)
	// Elsewhere are operations of other parts, with the reason. Those that are in neither are counted only.
	Elsewhere map[string]NotApplicable
	// Dialects and models that bind, beside rows without any.
	Dialects []string
}

// Run runs the rows of Dir, or those of the folder CONFORMANCE_DIR.
func (s Suite) Run(t *testing.T) {
	dir := cmp.Or(os.Getenv("CONFORMANCE_DIR"), s.Dir, filepath.Join("testdata", "conformance"))
	byOp := rowsByOp(t, dir)
	if len(byOp) == 0 {
		t.Fatalf("there are no rows in %s", dir)
	}
	total := tally{}
	others := 0
	for _, op := range slices.Sorted(maps.Keys(byOp)) {
		if s.Operations[op] == nil && s.Elsewhere[op] == "" {
			others += len(byOp[op])
			continue
		}
		t.Run(op, func(t *testing.T) {
			sum := tally{reasons: map[NotApplicable]int{}}
			for _, r := range byOp[op] {
				var passed bool
				var because NotApplicable
				t.Run(r.Name, func(t *testing.T) { passed, because = s.judge(t, r) })
				sum.add(passed, because)
			}
			t.Log(sum)
			total.run, total.passed, total.skipped = total.run+sum.run, total.passed+sum.passed, total.skipped+sum.skipped
		})
	}
	t.Logf("all: %s; of other operations %d", total, others)
}

type tally struct {
	run, passed, skipped int
	reasons              map[NotApplicable]int
}

func (s *tally) add(passed bool, because NotApplicable) {
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

// binding reports whether a row holds for this project, whatever dialect it was observed in.
func (s Suite) binding(r Row) bool {
	switch {
	case slices.Contains(r.Tags, "future"):
		return false
	case slices.Contains(r.Tags, "core"):
		return true
	}
	return slices.Contains(s.Dialects, r.Dialect)
}

// judge runs one row. A row of another dialect that comes out differently here does not apply.
func (s Suite) judge(t *testing.T, r Row) (passed bool, because NotApplicable) {
	operation, ok := s.Operations[r.Op]
	if !ok {
		return false, s.Elsewhere[r.Op]
	}
	difference, because := operation(t, r)
	switch {
	case because != "":
		return false, because
	case difference == "":
		return true, ""
	case !s.binding(r):
		t.Logf("%s: %s", r.Description, difference)
		return false, NotApplicable("differs in the dialect " + cmp.Or(r.Dialect, r.Model))
	}
	t.Errorf("%s: %s\ninput %s\nexpected %s", r.Description, difference, r.Input, r.Expected)
	return false, ""
}

func rowsByOp(t *testing.T, dir string) map[string][]Row {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	byOp := map[string][]Row{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var rows []Row
		if err := json.Unmarshal(data, &rows); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, r := range rows {
			byOp[r.Op] = append(byOp[r.Op], r)
		}
	}
	return byOp
}

// Decode reads input and expectation.
func Decode[I, E any](t *testing.T, r Row) (input I, expected E) {
	t.Helper()
	if err := json.Unmarshal(r.Input, &input); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(r.Expected, &expected); err != nil {
		t.Fatal(err)
	}
	return input, expected
}

// States reports whether a row has an expectation about a field.
func (r Row) States(field string) bool {
	var expected map[string]json.RawMessage
	return json.Unmarshal(r.Expected, &expected) == nil && expected[field] != nil
}

// Differences collects what differs.
type Differences []string

// Unless adds a difference where two things are not equal.
func (d *Differences) Unless(equal bool, format string, args ...any) {
	if !equal {
		*d = append(*d, fmt.Sprintf(format, args...))
	}
}

// String joins the differences.
func (d Differences) String() string { return strings.Join(d, "; ") }
