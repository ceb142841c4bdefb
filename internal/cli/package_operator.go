package cli

import (
	"os"
	"slices"
	"strings"
)

// PackageOperatorNames gives a command line of Package Operator its form here where a name means something else: repo is about
// repositories of the cluster, and inspect has the tree. Names that are free are hidden commands.
func PackageOperatorNames(args []string) []string {
	first := nextWord(args, 0)
	if first < 0 {
		return args
	}
	switch {
	case args[first] == "repo" && isOfRepositoryFile(args, nextWord(args, first+1)):
		args = slices.Clone(args)
		args[first] = "repository"
	case args[first] == "tree":
		args = slices.Clone(args)
		args[first] = "inspect"
		args = slices.Insert(args, first+1, "--tree")
	}
	return args
}

// isOfRepositoryFile reports whether a command is one of repository, of which repo is the short form in Package Operator.
func isOfRepositoryFile(args []string, verb int) bool {
	if verb < 0 {
		return false
	}
	switch args[verb] {
	case "initialize", "push", "pull":
		return true
	case "add", "remove":
		if file := nextWord(args, verb+1); file >= 0 {
			info, err := os.Stat(args[file])
			return err == nil && info.Mode().IsRegular()
		}
	}
	return false
}

// nextWord returns the index of the first word from one on, -1 for none. Flags are taken to have a value, as cobra does
// while it looks for the command.
func nextWord(args []string, from int) int {
	for i := from; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			return -1
		case !strings.HasPrefix(arg, "-") || arg == "-":
			return i
		case slices.Contains(switches, arg) || strings.Contains(arg, "=") || !strings.HasPrefix(arg, "--") && len(arg) > 2:
		default:
			i++
		}
	}
	return -1
}

// switches are flags without a value.
var switches = []string{"-A", "--all-namespaces", "--cluster", "-h", "--help", "--insecure", "--pull", "--version", "-y", "--yes"}
