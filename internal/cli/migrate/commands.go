package migrate

import (
	"github.com/spf13/cobra"

	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/migrate/imports"
)

// Commands returns the commands of this package.
func Commands(on command.Command) []*cobra.Command {
	return []*cobra.Command{imports.New(on), newAdopt(on), newRelease(on), newAdoptEngine(on), newReleaseEngine(on)}
}
