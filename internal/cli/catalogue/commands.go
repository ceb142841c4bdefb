package catalogue

import (
	"github.com/spf13/cobra"

	"lockstep.run/lockstep/internal/cli/command"
)

// Commands returns the commands of this package.
func Commands(on command.Command) []*cobra.Command {
	return []*cobra.Command{newRepo(on), newAvailable(on), newValues(on), newOutdated(on), newBundle(on)}
}
