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
	word := nextWord(args, first+1)
	now, flag := "", ""
	switch args[first] {
	case "repo":
		now = ofRepositoryFile(args, word)
	case "explain":
		now = ofSource(args, word, namesInstalled)
	case "tree":
		now, flag = ofSource(args, word, namesInstalled), "--tree"
	case "values":
		now, flag = ofSource(args, word, namesOffered), "--values"
	}
	if now == "" {
		return args
	}
	if flag != "--values" && now == "inspect" && content.BareName(args[word]) && !slices.Contains(args, "--pull") {
		fmt.Fprintf(errOut, "note: this is about the folder %[1]s; of an installed package: kubectl package explain package/%[1]s or clusterpackage/%[1]s\n", args[word])
	}
	args = slices.Clone(args)
	args[first] = now
	if flag != "" {
		args = slices.Insert(args, first+1, flag)
	}
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

// ofSource reports commands about a folder or an image, which explain, tree and values took besides names.
func ofSource(args []string, word int, isName func(string) bool) string {
	if word < 0 || isName(args[word]) && !slices.Contains(args, "--pull") {
		return ""
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

// namesOffered reports whether an argument names a package of a repository: a version after the only slash, or no sign of an
// image or a folder.
func namesOffered(arg string) bool {
	if content.IsPath(arg) || strings.ContainsAny(arg, ":@") {
		return false
	}
	_, version, slash := strings.Cut(arg, "/")
	version = strings.TrimPrefix(version, "v")
	return !slash || version != "" && version[0] >= '0' && version[0] <= '9' && !strings.Contains(version, "/")
}
