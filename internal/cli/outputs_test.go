package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Of every command that prints JSON it is known which, and so it has a schema.
func TestOutputs(t *testing.T) {
	t.Parallel()
	outputs, found := Outputs(), 0
	each(Tree(), func(cmd *cobra.Command) {
		flag := cmd.Flags().Lookup("output")
		if cmd.Hidden || flag == nil || !strings.HasPrefix(flag.Usage, "json") { // others name a file
			return
		}
		if found++; len(outputs[NameOf(cmd)]) == 0 {
			t.Errorf("%s is missing from Outputs of its package", NameOf(cmd))
		}
	})
	if found != len(outputs) || found < 40 {
		t.Errorf("%d commands, %d outputs", found, len(outputs))
	}
}
