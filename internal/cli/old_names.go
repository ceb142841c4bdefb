package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/content"
)

// oldNames gives a command line of earlier releases its present form where a name means something else now. Names that are
// free are aliases, or hidden commands.
func oldNames(args []string, errOut io.Writer) []string {
	first := nextWord(args, 0)
	if first < 0 {
		return args
	}
	now := ""
	switch args[first] {
	case "repo":
		now = ofRepositoryFile(args, nextWord(args, first+1))
	case "explain", "tree":
		now = ofSource(args, nextWord(args, first+1), errOut)
	}
	if now == "" {
		return args
	}
	args = slices.Clone(args)
	if args[first] == "tree" {
		args = slices.Insert(args, first+1, "--tree")
	}
	args[first] = now
	return args
}

// ofRepositoryFile reports commands of repository, of which repo was the short form.
func ofRepositoryFile(args []string, verb int) string {
	if verb < 0 {
		return ""
	}
	switch args[verb] {
	case "initialize", "init", "build", "push", "pull":
		return "repository"
	case "add", "remove":
		if file := nextWord(args, verb+1); file >= 0 {
			if info, err := os.Stat(args[file]); err == nil && info.Mode().IsRegular() {
				return "repository"
			}
		}
	}
	return ""
}

// ofSource reports commands about a folder or an image, which explain and tree took besides installed packages.
func ofSource(args []string, word int, errOut io.Writer) string {
	pull := slices.Contains(args, "--pull")
	if word < 0 || !pull && namesInstalled(args[word]) {
		return ""
	}
	if arg := args[word]; !pull && content.BareName(arg) {
		fmt.Fprintf(errOut, "note: this is about the folder %[1]s; of an installed package: kubectl package explain package/%[1]s or clusterpackage/%[1]s\n", arg)
	}
	return "inspect"
}

// namesInstalled reports whether an argument names an installed package: with its kind, or as a bare name that is neither a
// folder with a package nor an image.
func namesInstalled(arg string) bool {
	if content.IsPath(arg) && (!content.BareName(arg) || content.HasManifest(arg)) {
		return false
	}
	n, err := cluster.ParseName(arg)
	return err == nil && (n.Scope != "" || !strings.ContainsAny(arg, ":@"))
}
