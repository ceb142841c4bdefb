package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"lockstep.run/lockstep/internal/cli/author"
	"lockstep.run/lockstep/internal/cli/catalogue"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/install"
	"lockstep.run/lockstep/internal/cli/migrate"
	"lockstep.run/lockstep/internal/cli/operate"
	"lockstep.run/lockstep/internal/cli/output"
	"lockstep.run/lockstep/internal/cli/planning"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/kube/version"
)

// Commands creates commands of other packages, such as the command of the page, which builds on
// this package's parts.
type Commands func(command.Command) []*cobra.Command

// Main returns the exit code. A second interrupt ends the process.
func Main(more ...Commands) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	// After the first interrupt, signals have their usual effect again, so a second one ends the
	// process.
	context.AfterFunc(ctx, stop)
	return Run(ctx, os.Args[1:], genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}, more...)
}

// Run runs one command line and returns its exit code.
func Run(ctx context.Context, args []string, streams genericiooptions.IOStreams, more ...Commands) int {
	return RunOn(ctx, args, streams, cluster.Connect, more...)
}

// RunOn is Run with another way to connect to clusters.
func RunOn(ctx context.Context, args []string, streams genericiooptions.IOStreams, dial command.Dialer, more ...Commands) int {
	// Libraries log to a global logger, which would mix with the output.
	ctrllog.SetLogger(logr.Discard())
	ctx = logr.NewContext(ctx, logr.Discard())

	root := newRoot(streams, dial, more...)
	root.SetArgs(PackageOperatorNames(args))
	return command.Exit(root.ExecuteContext(ctx), streams.ErrOut)
}

// Tree returns all commands, for the reference. None of them can run.
func Tree(more ...Commands) *cobra.Command {
	return newRoot(genericiooptions.NewTestIOStreamsDiscard(), nil, more...)
}

// newRoot returns the root with all commands, in groups by their purpose.
func newRoot(streams genericiooptions.IOStreams, dial command.Dialer, more ...Commands) *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-package",
		Short: "Build, check, install and watch packages of Kubernetes objects",
		Long: `Build, check, install and watch packages of Kubernetes objects.

A package is a folder with a manifest.yaml and Kubernetes manifests. As an image it is
installed by a Package in a namespace or by a ClusterPackage, phase by phase: the next
phase starts when everything in the phases before it works.`,
		Version:       version.Get(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Run:           func(cmd *cobra.Command, _ []string) { fmt.Fprint(streams.Out, wayIn(cmd)) },
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl package"},
	}

	root.SetVersionTemplate("kubectl-package {{.Version}}\n")
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return command.UsageError(cmd, err) })
	on := command.Command{Streams: streams, Dial: dial}
	var look []*cobra.Command
	for _, commands := range more {
		look = append(look, commands(on)...)
	}

	for _, group := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Author packages", author.Commands(on)},
		{"Install and follow", slices.Concat(planning.Commands(on), install.Commands(on))},
		{"Inspect and repair", append(look, operate.Commands(on)...)},
		{"Catalogue", catalogue.Commands(on)},
		{"Move in and out", migrate.Commands(on)},
	} {
		root.AddGroup(&cobra.Group{ID: group.title, Title: group.title + ":"})
		for _, cmd := range group.commands {
			cmd.GroupID = group.title
			root.AddCommand(cmd)
		}
	}

	root.AddCommand(newVersion(streams))
	command.Groups(root)
	return root
}

// buildReport is the output of version as JSON or YAML.
type buildReport struct {
	Version  string            `json:"version"`
	Go       string            `json:"go"`
	Platform string            `json:"platform"`
	Settings map[string]string `json:"settings,omitempty"`
}

// newVersion returns the command version.
func newVersion(streams genericiooptions.IOStreams) *cobra.Command {
	var flags output.Flags
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the version of this program and how it was built",
		Args:  command.Takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := flags.Check(); err != nil {
				return command.UsageError(cmd, err)
			}
			report := buildReport{Version: version.Get(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Settings: map[string]string{}}
			var keys []string
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, s := range info.Settings {
					keys = append(keys, s.Key)
					report.Settings[s.Key] = s.Value
				}
			}

			if flags.Wanted() {
				return flags.Print(streams.Out, report)
			}
			fmt.Fprintf(streams.Out, "kubectl-package\t%s\ngo\t%s\nplatform\t%s\n", report.Version, report.Go, report.Platform)
			for _, key := range keys {
				fmt.Fprintf(streams.Out, "%s\t%s\n", terminal.Line(key), terminal.Line(report.Settings[key]))
			}

			return nil
		},
	}

	flags.Add(cmd)
	return cmd
}

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
