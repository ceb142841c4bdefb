package cli

import (
	"maps"
	"strings"

	"github.com/spf13/cobra"

	"lockstep.run/lockstep/internal/cli/author"
	"lockstep.run/lockstep/internal/cli/catalogue"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/install"
	"lockstep.run/lockstep/internal/cli/operate"
	"lockstep.run/lockstep/internal/cli/operate/rollout"
	"lockstep.run/lockstep/internal/cli/output"
	"lockstep.run/lockstep/internal/cli/planning"
)

// Outputs returns what all commands print with -o json, by their names such as "rollout timeline".
func Outputs() output.Shapes {
	all := output.Shapes{"version": {buildReport{}}}
	for _, of := range []output.Shapes{author.Outputs(), planning.Outputs(), install.Outputs(), operate.Outputs(), rollout.Outputs(), catalogue.Outputs()} {
		maps.Copy(all, of)
	}
	each(Tree(), func(cmd *cobra.Command) {
		if flag := cmd.Flags().Lookup("output"); flag != nil && flag.Usage == command.ReportsUsage {
			all[NameOf(cmd)] = []any{command.Event{}}
		}
	})
	return all
}

// SchemaOf returns the name of the file in docs/schemas/outputs with the schema of what a command prints.
func SchemaOf(name string, prints []any) string {
	if _, is := prints[0].(command.Event); is {
		return "events.json"
	}
	return strings.ReplaceAll(name, " ", "-") + ".json"
}

// NameOf returns the name of a command, such as "rollout timeline".
func NameOf(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), "kubectl package ")
}

func each(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, child := range cmd.Commands() {
		each(child, visit)
	}
}
