package cli_test

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"lockstep.run/lockstep/internal/cli"
)

// Details belong in docs/.
func TestHelpIsShort(t *testing.T) {
	t.Parallel()
	const most = 120
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		if n := len(strings.Fields(cmd.Long)); n > most {
			t.Errorf("the help of %s has %d words, more than %d", cmd.CommandPath(), n, most)
		}
		for _, child := range cmd.Commands() {
			visit(child)
		}
	}
	visit(cli.Tree())
}
