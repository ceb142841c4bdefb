package content

import (
	"context"

	"github.com/spf13/cobra"

	"lockstep.run/lockstep/internal/cli/author/testrunner"
	"lockstep.run/lockstep/internal/loader"
)

// CheckFlags say how a package is checked.
type CheckFlags struct{ ignoreSchemas bool }

// Add adds the flags to a command.
func (c *CheckFlags) Add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&c.ignoreSchemas, "ignore-schemas", false, "do not check objects against schemas; for fields of later versions of Kubernetes")
}

// Validate treats test cases without fixtures as warnings.
func (c *CheckFlags) Validate(ctx context.Context, folder string, files loader.Files) (Findings, error) {
	result, err := testrunner.Run(ctx, files, testrunner.Options{Folder: folder, IgnoreSchemas: c.ignoreSchemas})
	if err != nil {
		return Findings{}, err
	}
	mismatches, missing := result.Mismatches()
	return FindingsOf(append(result.Problems, mismatches...), append(result.Warnings, missing...)), nil
}
