package author

import (
	"context"

	"github.com/spf13/cobra"

	"lockstep.run/lockstep/internal/cli/author/testrunner"
	"lockstep.run/lockstep/internal/cli/content"
	"lockstep.run/lockstep/internal/loader"
)

// checkFlags say how a package is checked.
type checkFlags struct{ ignoreSchemas bool }

// add adds the flags to a command.
func (c *checkFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&c.ignoreSchemas, "ignore-schemas", false, "do not check objects against schemas; for fields of later versions of Kubernetes")
}

func (c *checkFlags) validate(ctx context.Context, folder string, files loader.Files) (content.Findings, error) {
	return testrunner.Validate(ctx, files, testrunner.Options{Folder: folder, IgnoreSchemas: c.ignoreSchemas})
}
