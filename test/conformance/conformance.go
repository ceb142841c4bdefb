// Package conformance runs cases that are data: rows of an operation, its input and the expected
// result. An operation reads only the input, calls production code, and compares the result with
// the expected one. An input that an operation does not know, an expectation that it does not
// compare, and an operation that no test runs are failures.
//
// A row with the tag core, or with a dialect of the suite, has to give the expected result. A row
// with another dialect does not apply if its result differs. Neither does one with the tag future,
// which describes open decisions. The decisions that Lockstep makes differently on purpose are
// listed in differences.go.
package conformance

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

//go:embed testdata/*.json
var testdata embed.FS

// runners maps operations to the folders whose TestConformance runs them.
var runners = map[string]string{
	"select": versions, "match": versions, "parse-constraint": versions, "wildcard-expansion": versions, "prerelease-filter": versions, "order": versions,
	"compare": versions, "parse-version": versions, "package-install-select": versions, "dependency-install-select": versions, "reference-resolve": versions,
	"validate": versions, "repository-revision": versions, "global-list": versions, "repository-filter": versions,
	"dag": resolver, "resolve": resolver, "choose-update": resolver, "choose-digest": resolver, "prune": resolver, "reconcile-step": resolver,
	"install-plan": resolver, "install-decision": resolver, "install-decision-list": resolver, "wait": resolver, "install-scope": resolver,
	"validate-dependency": resolver,
	"ownership":           packages, "delete": packages, "scenario": packages, "watch-enqueue": packages, "downgrade-gate": packages,
	"sync-timer": repositories, "sync-due": repositories,
	"values-merge": carvel, "extension-order": carvel,
	"ownership-conflict": phases, "establish": phases, "release": phases, "package-health": phases,
	"revision-manage": revisions,
}

const (
	versions     = "internal/catalog/versions"
	resolver     = "internal/resolver"
	packages     = "internal/controllers/packages"
	repositories = "internal/controllers/repositories"
	carvel       = "internal/cli/carvel"
	phases       = "internal/phases"
	revisions    = "internal/revisions"
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

// Operation runs a row.
type Operation func(t *testing.T, r Row) *Expectation

// Of returns an Operation that runs a function of the input.
func Of[I any](run func(t *testing.T, in I, want *Expectation)) Operation {
	return func(t *testing.T, r Row) *Expectation {
		t.Helper()
		var in I
		want := &Expectation{compared: map[string]bool{}, otherwise: map[string]Difference{}}
		if want.err = errors.Join(Strict(r.Input, &in), Strict(r.Expected, &want.stated)); want.err == nil {
			run(t, in, want)
		}
		return want
	}
}

// Strict decodes JSON, and returns an error for an unknown field.
func Strict(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// Suite runs rows.
type Suite struct {
	Operations map[string]Operation
	// Dialects are the binding ones, in addition to rows without a dialect.
	Dialects []string
}

// Run runs the rows of testdata, or those in the folder CONFORMANCE_DIR.
func (s Suite) Run(t *testing.T) {
	byOp, here, count := rowsByOp(t), here(t), map[string]int{}
	for op := range byOp {
		if runners[op] == "" {
			t.Errorf("no test runs the operation %s", op)
		}
	}

	for op, runner := range runners {
		if s.Operations[op] != nil != (runner == here) {
			t.Errorf("%s is run by %s", op, runner)
		}
	}

	for _, op := range slices.Sorted(maps.Keys(s.Operations)) {
		t.Run(op, func(t *testing.T) {
			for _, r := range byOp[op] {
				t.Run(r.Name, func(t *testing.T) {
					because := s.run(t, r)
					if t.Failed() {
						because = "failed"
					}
					count[cmp.Or(because, "as expected")]++
				})
			}
		})
	}

	for _, outcome := range slices.Sorted(maps.Keys(count)) {
		t.Logf("%d %s", count[outcome], outcome)
	}
}

// here returns the folder of the test.
func here(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	_, folder, _ := strings.Cut(filepath.ToSlash(dir), "/internal/")
	return "internal/" + folder
}

// run runs one row. If its result differs, it returns why this is not a failure.
func (s Suite) run(t *testing.T, r Row) (because string) {
	because, problem := s.judge(r, s.Operations[r.Op](t, r), os.Getenv("CONFORMANCE_DIR") == "")
	if problem != "" {
		t.Errorf("%s: %s\ninput %s\nexpected %s", r.Description, problem, r.Input, r.Expected)
	}
	return because
}

// binding reports whether a row applies to this project, regardless of its dialect.
func (s Suite) binding(r Row) bool {
	switch {
	case slices.Contains(r.Tags, "future"):
		return false
	case slices.Contains(r.Tags, "core"):
		return true
	}
	return r.Dialect == "" || slices.Contains(s.Dialects, r.Dialect)
}

// judge returns why a different result of a row is not a failure, or its problem; both are empty if
// the row passed. In testdata, each row that differs on purpose is listed.
func (s Suite) judge(r Row, want *Expectation, own bool) (because, problem string) {
	missed, known := want.missed(), listedAs(r.Name)
	switch {
	case want.err != nil:
		return "", fmt.Sprintf("the row has another shape than the README describes: %v", want.err)
	case len(missed) > 0:
		return "", "nothing compares " + strings.Join(missed, ", ")
	case known != "" && !want.differs():
		return "", "it comes out as expected, and is listed among those that differ on purpose: " + string(known)
	case !want.differs():
		return "", ""
	case known != "":
		return string(known), ""
	case len(want.differences) == 0 && !own:
		return string(want.onPurpose[0]), ""
	case len(want.differences) > 0 && !s.binding(r):
		return "differs in the dialect " + cmp.Or(r.Dialect, r.Model), ""
	}

	return "", fmt.Sprintf("%s %v", strings.Join(want.differences, "; "), want.onPurpose)
}

func rowsByOp(t *testing.T) map[string][]Row {
	t.Helper()
	dir, err := fs.Sub(testdata, "testdata")
	if err != nil {
		t.Fatal(err)
	}
	if other := os.Getenv("CONFORMANCE_DIR"); other != "" {
		dir = os.DirFS(other)
	}

	files, err := fs.Glob(dir, "*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no rows: %v", err)
	}

	byOp := map[string][]Row{}
	for _, file := range files {
		data, err := fs.ReadFile(dir, file)
		if err != nil {
			t.Fatal(err)
		}
		var rows []Row
		if err := Strict(data, &rows); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, r := range rows {
			byOp[r.Op] = append(byOp[r.Op], r)
		}
	}

	return byOp
}
