package cli

import (
	"os"
	"slices"
	"strings"
)

// PackageOperatorNames translates a command line of Package Operator if a name has another meaning
// here: repo is about repositories in the cluster, and inspect prints the tree. Other names are
// hidden commands.
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

// isOfRepositoryFile reports whether a command belongs to repository, which Package Operator
// shortens to repo.
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

// nextWord returns the index of the first word at or after an index; -1 if there is none. It
// assumes that flags have a value, as cobra's own search for the command does.
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
