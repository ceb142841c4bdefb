package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/test/clustertest"
	"lockstep.run/lockstep/test/golden"
)

// The output of the root fits on a screen and names every command in its group, and each first step
// can be typed.
func TestWayIn(t *testing.T) {
	t.Parallel()
	root := newRoot(clustertest.Streams(nil, nil), cluster.Connect)
	text := wayIn(root)
	if lines := strings.Count(text, "\n"); lines > 25 {
		t.Errorf("it has %d lines:\n%s", lines, text)
	}
	for _, cmd := range root.Commands() {
		if cmd.GroupID == "" && cmd.Name() != "version" {
			t.Errorf("%s is in no group", cmd.Name())
		}
		if cmd.IsAvailableCommand() && cmd.GroupID != "" && !strings.Contains(text, " "+cmd.Name()) {
			t.Errorf("%s is not named", cmd.Name())
		}
	}
	for _, step := range firstSteps {
		if cmd, _, err := root.Find(strings.Fields(step[0])); err != nil || cmd.HasSubCommands() {
			t.Errorf("%s: %v", step[0], err)
		}
	}
}

// Each command that prints JSON has a golden file for it. Commands that change something all print
// the same kind of lines.
func TestEveryJSONHasAFile(t *testing.T) {
	t.Parallel()
	found := 0
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, child := range cmd.Commands() {
			visit(child)
		}
		flag := cmd.Flags().Lookup("output")
		if cmd.Hidden || flag == nil || !strings.HasPrefix(flag.Usage, "json") { // others name a file
			return
		}
		name := strings.ReplaceAll(strings.TrimPrefix(cmd.CommandPath(), "kubectl package "), " ", "-")
		if flag.Usage == command.ReportsUsage {
			name = "events"
		}
		found++
		for _, pattern := range []string{"", "*/", "*/*/"} {
			if files, err := filepath.Glob(pattern + "testdata/json/" + name + ".json"); err == nil && len(files) == 1 {
				return
			}
		}
		t.Errorf("%s has no testdata/json/%s.json", cmd.CommandPath(), name)
	}
	visit(Tree())
	if found < 30 {
		t.Errorf("only %d commands print JSON", found)
	}
}

func TestVersionJSON(t *testing.T) {
	t.Parallel()
	golden.JSON(t, "version", buildReport{Version: "v0.2.0", Go: "go1.26", Platform: "linux/amd64", Settings: map[string]string{"vcs.revision": "0123abc"}})
}
