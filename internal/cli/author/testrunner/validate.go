package testrunner

import (
	"context"

	"lockstep.run/lockstep/internal/cli/content"
	"lockstep.run/lockstep/internal/loader"
)

// Validate tests a package. Test cases without fixtures are warnings.
func Validate(ctx context.Context, files loader.Files, opts Options) (content.Findings, error) {
	result, err := Run(ctx, files, opts)
	if err != nil {
		return content.Findings{}, err
	}
	mismatches, missing := result.Mismatches()
	return content.FindingsOf(append(result.Problems, mismatches...), append(result.Warnings, missing...)), nil
}
