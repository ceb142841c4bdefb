package planning

import (
	"github.com/spf13/cobra"

	"lockstep.run/lockstep/internal/cli/command"
)

// Commands returns the commands of this package.
func Commands(on command.Command) []*cobra.Command {
	return []*cobra.Command{newPlan(on), newRBAC(on)}
}
