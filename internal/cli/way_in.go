package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"lockstep.run/lockstep/internal/cli/terminal"
)

func init() { cobra.EnableCommandSorting = false } // groups list their commands in the order of their use

// firstSteps lead from an empty cluster to a package that works, and from objects to a package.
var firstSteps = [][]string{
	{"repo add NAME IMAGE", "add a repository of packages"},
	{"available", "see the packages that can be installed"},
	{"plan PACKAGE", "preview the installation"},
	{"install PACKAGE", "install it, and watch"},
	{"status NAME", "see its state; explain NAME shows why it does not work"},
	{"init FOLDER", "create a package of your own"},
	{"build FOLDER -t IMAGE --push", "publish it"},
}

// wayIn is the output of the root without arguments: all commands, and the first steps, on one
// screen.
func wayIn(root *cobra.Command) string {
	t := terminal.Writer{}
	t.Line(root.Short + ".\n")
	var groups [][]string
	for _, group := range root.Groups() {
		var names []string
		for _, cmd := range root.Commands() {
			if cmd.GroupID == group.ID && cmd.IsAvailableCommand() {
				names = append(names, cmd.Name())
			}
		}
		groups = append(groups, []string{group.Title, strings.Join(names, " ")})
	}

	t.Rows("", groups)
	t.Line("\nFirst steps:")
	var steps [][]string
	for _, step := range firstSteps {
		steps = append(steps, []string{"  " + root.DisplayName() + " " + step[0], step[1]})
	}

	t.Rows("", steps)
	t.Line("\n" + `Use "` + root.DisplayName() + ` --help" to describe each command, and "` + root.DisplayName() + ` [command] --help" for one of them.`)
	return t.String()
}
