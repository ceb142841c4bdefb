package operate

import (
	"github.com/spf13/cobra"

	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/operate/rollout"
)

// Commands returns the commands of this package.
func Commands(on command.Command) []*cobra.Command {
	return []*cobra.Command{
		newStatus(on), newExplain(on), newDeps(on), newLock(on), rollout.New(on), newVerify(on), newSupport(on),
		newPause(on), newUnpause(on), newRetry(on), newRerun(on),
		newClusterTree(on),
	}
}
