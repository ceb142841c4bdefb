package author

import (
	"github.com/spf13/cobra"

	"lockstep.run/lockstep/internal/cli/author/repositories"
	"lockstep.run/lockstep/internal/cli/command"
)

// Commands returns the commands of this package.
func Commands(on command.Command) []*cobra.Command {
	return []*cobra.Command{
		newInit(on.Streams), newKickstart(on.Streams), newValidate(on.Streams), newLint(on.Streams), newRender(on.Streams), newInspect(on),
		newTest(on.Streams), newUpdate(on.Streams), newBuild(on.Streams), repositories.New(on.Streams),
	}
}
