package cli

import (
	"strings"
	"testing"

	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/test/clustertest"
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
