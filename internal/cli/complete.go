package cli

import (
	"github.com/spf13/cobra"

	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/manifest"
)

// completeFrom completes a flag with names that the package in the folder of the
// first argument has. Images are not pulled for it.
func completeFrom(names func(loader.Files) []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 || !isPath(args[0]) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		files, err := readSource(args[0])
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return names(files), cobra.ShellCompDirectiveNoFileComp
	}
}

func componentsOf(files loader.Files) []string {
	var names []string
	for _, part := range loader.Parts(files) {
		if part.Component != "" {
			names = append(names, part.Component)
		}
	}
	return names
}

func testCasesOf(files loader.Files) []string {
	result, _ := manifest.Read(files, "")
	if result == nil {
		return nil
	}
	var names []string
	for _, tc := range result.Manifest.Test.Template {
		names = append(names, tc.Name)
	}
	return names
}
