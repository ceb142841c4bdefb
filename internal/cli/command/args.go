package command

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/terminal"
)

// PackageName parses the arguments of commands about packages, not deployments.
func PackageName(args []string) (cluster.Name, error) {
	return cluster.ParseName(strings.Join(args, "/"))
}

// Positive checks numbers of revisions. 0 means that the flag is not given.
func Positive(flag string, n *int64) func() error {
	return func() error {
		if *n < 0 {
			return fmt.Errorf("--%s must be positive", flag)
		}
		return nil
	}
}

// ExitCode is an error without a message. It is the exit code of the program.
type ExitCode int

// Error implements error.
func (e ExitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// Exit prints an error, unless it is an exit code, and returns the exit code of the program.
func Exit(err error, errOut io.Writer) int {
	if err == nil {
		return 0
	}
	if code := ExitCode(0); errors.As(err, &code) {
		return int(code)
	}
	fmt.Fprintln(errOut, "Error: "+terminal.Text(err.Error()))
	return 1
}

// UsageError is an error of the arguments that points to the help of the command.
func UsageError(cmd *cobra.Command, err error) error {
	end := "."
	if strings.HasSuffix(err.Error(), "?") {
		end = ""
	}
	return fmt.Errorf("arguments invalid: %w%s See: %s --help", err, end, cmd.CommandPath())
}

// Groups makes commands that only have subcommands refuse other words and suggest the intended
// command. Flags after such a word are unknown there, so they are ignored.
func Groups(root *cobra.Command) {
	for _, cmd := range append(root.Commands(), root) {
		if !cmd.HasSubCommands() {
			continue
		}
		cmd.Args, cmd.SuggestionsMinimumDistance, cmd.FParseErrWhitelist.UnknownFlags = noArgs, 2, true
		if cmd.Run == nil {
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
}

// noArgs refuses a word that is not a subcommand, and suggests similar ones.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("unknown command %q", args[0])
	if meant := cmd.SuggestionsFor(args[0]); len(meant) > 0 {
		text += ". Did you mean " + cmd.CommandPath() + " " + strings.Join(meant, " or ") + "?"
	}
	return UsageError(cmd, errors.New(text))
}

// Takes checks the number of arguments; the names of optional ones are in brackets.
func Takes(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > len(names) {
			return UsageError(cmd, fmt.Errorf("unexpected argument %q", args[len(names)]))
		}
		for i, name := range names {
			if i >= len(args) && !strings.HasPrefix(name, "[") || i < len(args) && args[i] == "" {
				return UsageError(cmd, errors.New(strings.Trim(name, "[]")+" is missing"))
			}
		}
		return nil
	}
}
