package cli

import (
	"os"
	"slices"
)

// oldNames gives a command line of earlier releases its present form where a name means something else now: repo was short
// for repository, whose commands are about files. Names that are free are hidden aliases of commands.
func oldNames(args []string) []string {
	repo := nextWord(args, 0)
	if repo < 0 || args[repo] != "repo" {
		return args
	}
	verb := nextWord(args, repo+1)
	if verb < 0 {
		return args
	}
	switch args[verb] {
	case "initialize", "init", "build", "push", "pull":
	case "add", "remove":
		file := nextWord(args, verb+1)
		if file < 0 {
			return args
		}
		if info, err := os.Stat(args[file]); err != nil || !info.Mode().IsRegular() {
			return args
		}
	default:
		return args
	}
	args = slices.Clone(args)
	args[repo] = "repository"
	return args
}
