package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The pages are what the code says now.
func TestPagesAreCurrent(t *testing.T) {
	all, err := pages("../..")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range all {
		got, err := os.ReadFile(filepath.Join("../../docs/reference", name))
		if err != nil || string(got) != want {
			t.Errorf("docs/reference/%s is stale, run ./task generate: %v\n%s", name, err, cmp.Diff(string(got), want))
		}
		if rows := strings.Count(want, "\n| `"); rows < 25 && name != "../alerts.md" {
			t.Errorf("%s has %d rows: the code is not read as it is written", name, rows)
		}
		if strings.Contains(want, "| Reason") && strings.Contains(want, "| ConditionReady") {
			t.Errorf("%s has names of Go", name)
		}
	}
}
