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

// validate treats test cases without fixtures as warnings.
func (c *checkFlags) validate(ctx context.Context, folder string, files loader.Files) (content.Findings, error) {
	result, err := testrunner.Run(ctx, files, testrunner.Options{Folder: folder, IgnoreSchemas: c.ignoreSchemas})
	if err != nil {
		return content.Findings{}, err
	}
	mismatches, missing := result.Mismatches()
	return content.FindingsOf(append(result.Problems, mismatches...), append(result.Warnings, missing...)), nil
}
