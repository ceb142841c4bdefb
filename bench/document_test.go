package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep.run/lockstep/bench/measure"
)

func TestInsert(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "performance.md")
	write := func(content string) {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rep := report{Workloads: []result{{Name: "50", Workload: measure.Workload{Objects: 50, Phases: 5, Packages: 1}, Rows: []row{{Scenario: measure.Drift}}}}}
	write("# Before\n\n<!-- bench -->\nold figures\n<!-- /bench -->\n\nAfter\n")
	for range 2 { // the second time it replaces what the first one wrote
		if err := rep.insert(path); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got := string(raw)
	if !strings.HasPrefix(got, "# Before\n\n<!-- bench -->\n") || !strings.HasSuffix(got, "<!-- /bench -->\n\nAfter\n") || strings.Contains(got, "old") || strings.Count(got, "| drift ") != 2 {
		t.Errorf("the document became:\n%s", got)
	}
	write("no place\n")
	if err := rep.insert(path); err == nil {
		t.Error("a document without a place for results is no error")
	}
	if err := rep.insert(""); err != nil {
		t.Errorf("no document: %v", err)
	}
}
