package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/loader/violation"
)

// otherWords are commands of Helm, kctrl and kubectl that have another name here, by the command that they stand below.
var otherWords = map[string]map[string]string{
	"kubectl package": {
		"search":     "what can be installed is listed by kubectl package available",
		"show":       "what is offered of a package is shown by kubectl package available NAME, its values by kubectl package available NAME --values",
		"history":    "the revisions of a package are listed by kubectl package rollout history NAME",
		"rollback":   "a package goes back to an earlier revision by kubectl package rollout undo NAME --to-revision N",
		"undo":       "a package goes back to an earlier revision by kubectl package rollout undo NAME --to-revision N",
		"installed":  "what is installed is listed by kubectl package list; one package is shown by kubectl package status NAME, changed by upgrade and deleted by delete",
		"get":        "an installed package is shown by kubectl package status NAME, its objects by kubectl package status NAME --objects, what is offered by kubectl package available NAME",
		"describe":   "an installed package is shown by kubectl package status NAME, and explained by kubectl package explain NAME",
		"template":   "the objects of a package are printed by kubectl package render SOURCE",
		"diff":       "what an install or an upgrade would change is shown by kubectl package plan",
		"create":     "a package is begun by kubectl package init FOLDER",
		"push":       "a package is built and pushed by kubectl package build SOURCE --push",
		"kick":       "a package is looked at again by kubectl package retry NAME, a repository by kubectl package repo update NAME",
		"dependency": "what packages depend on is shown by kubectl package deps",
		"resume":     "a package goes on by kubectl package unpause NAME",
	},
	"kubectl package repository": {
		"list":   "the repositories of a cluster are listed by kubectl package repo get",
		"get":    "a repository of a cluster is shown by kubectl package repo get NAME",
		"update": "a repository of a cluster is fetched again, or changed, by kubectl package repo update NAME",
		"kick":   "a repository of a cluster is fetched again by kubectl package repo update NAME",
		"delete": "a repository of a cluster is deleted by kubectl package repo delete NAME",
		"index":  "a repository is made of files and folders by kubectl package repository build",
	},
	"kubectl package repo": {
		"kick":       "a repository is fetched again by kubectl package repo update NAME",
		"index":      "a repository is made of files and folders by kubectl package repository build",
		"build":      "a repository is made of files and folders by kubectl package repository build",
		"initialize": "a file with a repository is begun by kubectl package repository initialize FILE",
		"push":       "a repository in a file is pushed by kubectl package repository push FILE TAG",
	},
}

// unknownCommand returns an error for a word in the place of a command that is none, whatever flags stand around it: as
// these are unknown, too, they would be refused in its place.
func unknownCommand(root *cobra.Command, args []string) error {
	found, rest, err := root.Find(args)
	if err != nil || !found.HasSubCommands() {
		return nil
	}
	word := firstWord(rest)
	if word == "" || slices.Contains([]string{"help", "completion", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd}, word) {
		return nil
	}
	advice := otherWords[found.CommandPath()][word]
	if advice == "" {
		advice = violation.Suggest(word, commandNames(found), "")
	}
	if advice == "" {
		return command.UsageError(found, fmt.Errorf("unknown command %q", word))
	}
	return command.UsageError(found, fmt.Errorf("unknown command %q: %s", word, strings.TrimSuffix(advice, ".")))
}

// firstWord returns the first argument that is neither a flag nor its value.
func firstWord(args []string) string {
	if i := nextWord(args, 0); i >= 0 {
		return args[i]
	}
	return ""
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

func commandNames(of *cobra.Command) []string {
	var names []string
	for _, c := range of.Commands() {
		if c.IsAvailableCommand() {
			names = append(append(names, c.Name()), c.Aliases...)
		}
	}
	return names
}
