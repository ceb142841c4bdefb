package command

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/output"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
)

// Dialer connects to a cluster. It is cluster.Connect except in tests.
type Dialer func(genericclioptions.RESTClientGetter, io.Writer) (*cluster.Cluster, error)

// Command is shared by all commands about a cluster.
type Command struct {
	Streams genericiooptions.IOStreams
	Dial    Dialer
	Flags   *genericclioptions.ConfigFlags
	Output  output.Flags
	Wait    bool
	Timeout time.Duration
	// yes answers questions.
	yes bool
}

// Connects adds kubectl's flags, except --cluster, which selects cluster packages.
func (c *Command) Connects(cmd *cobra.Command) {
	c.Flags = genericclioptions.NewConfigFlags(false)
	// These two flags of kubectl are left out: the name is taken, and no discovery is cached.
	c.Flags.ClusterName, c.Flags.CacheDir = nil, nil
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	c.Flags.AddFlags(own)
	usage := map[string]string{
		"namespace":  "use this `namespace` instead of the context's",
		"context":    "use this `context` of the kubeconfig instead of the current one",
		"kubeconfig": "use this kubeconfig `file` instead of KUBECONFIG's",
	}

	own.VisitAll(func(f *pflag.Flag) {
		// The command "kubectl options" explains the hidden ones.
		f.Usage, f.Hidden = usage[f.Name], usage[f.Name] == ""
	})

	cmd.Flags().AddFlagSet(own)
	if cmd.ValidArgsFunction == nil {
		cmd.ValidArgsFunction = c.CompleteNames
	}
}

// Runs completes a command whose arguments parse turns into a value. checks validate its flags.
func Runs[T any](
	cmd *cobra.Command, parse func([]string) (T, error), run func(context.Context, T) error, checks ...func() error,
) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		value, err := parse(args)
		for _, check := range checks {
			err = cmp.Or(err, check())
		}
		if err != nil {
			return UsageError(cmd, err)
		}
		return run(cmd.Context(), value)
	}

	return cmd
}

// OnSource completes a command about a folder, a file or an image.
func OnSource(cmd *cobra.Command, run func(ctx context.Context, source string) error, checks ...func() error) *cobra.Command {
	return Runs(cmd, func(args []string) (string, error) { return args[0], nil }, run, checks...)
}

// About completes a command whose arguments name one package or deployment.
func (c *Command) About(
	cmd *cobra.Command, parse func([]string) (cluster.Name, error), run func(context.Context, cluster.Name) error, checks ...func() error,
) *cobra.Command {
	c.Connects(cmd)
	return Runs(cmd, parse, run, slices.Concat([]func() error{c.Output.Check}, checks)...)
}

// AddTimeout adds --timeout.
func (c *Command) AddTimeout(cmd *cobra.Command, fallback time.Duration, usage string) {
	cmd.Flags().DurationVar(&c.Timeout, "timeout", fallback, usage)
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if c.Timeout <= 0 {
			return UsageError(cmd, errors.New("--timeout must be positive"))
		}
		return nil
	}
}

// AddWait adds --wait, --timeout and -o json.
func (c *Command) AddWait(cmd *cobra.Command, fallback time.Duration, usage string) {
	cmd.Flags().BoolVar(&c.Wait, "wait", true, usage)
	c.AddTimeout(cmd, fallback, "how long to wait")
	c.Reports(cmd)
}

// Connect connects to the cluster that the flags name.
func (c *Command) Connect() (*cluster.Cluster, error) {
	return c.Dial(c.Flags, c.Streams.ErrOut)
}

// Find connects to the cluster and reads a package.
func (c *Command) Find(ctx context.Context, n cluster.Name) (*cluster.Cluster, progress.Target, corev1alpha1.GenericPackage, error) {
	cl, err := c.Connect()
	if err != nil {
		return nil, progress.Target{}, nil, err
	}
	target, pkg, err := cl.Find(ctx, n)
	return cl, target, pkg, err
}

// Rollout connects to the cluster and reads a deployment with its revisions.
func (c *Command) Rollout(ctx context.Context, n cluster.Name) (*cluster.Cluster, *cluster.Rollout, error) {
	cl, err := c.Connect()
	if err != nil {
		return nil, nil, err
	}
	r, err := cl.Rollout(ctx, n)
	return cl, r, err
}

// WarnOfSilence warns on stderr if no manager runs, at the cost of one request. With -o, which
// programs read, it does nothing.
func (c *Command) WarnOfSilence(ctx context.Context, cl *cluster.Cluster) {
	if c.Output.Wanted() {
		return
	}
	if silence := cl.Silence(ctx); silence > 0 {
		fmt.Fprintf(c.Streams.ErrOut, "Warning: no manager has renewed its Lease for %s, so this might be outdated: is lockstep-manager running?\n",
			duration.HumanDuration(silence))
	}
}

// CompleteSource completes a folder or a name for up to most arguments.
func (c *Command) CompleteSource(most int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begin string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names, end := c.CompleteNames(cmd, nil, begin)
		// A source can be a file path, so the shell completes the first argument, too.
		if len(args) == 0 {
			end = cobra.ShellCompDirectiveDefault
		}
		return names, end
	}
}

// CompleteNames completes the name of an installed package.
func (c *Command) CompleteNames(cmd *cobra.Command, args []string, begin string) ([]string, cobra.ShellCompDirective) {
	return c.Completes((*cluster.Cluster).Complete)(cmd, args, begin)
}

// Completes completes the first argument with names from a cluster that have its prefix.
func (c *Command) Completes(names func(cl *cluster.Cluster, ctx context.Context, begin string) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begin string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		cl, err := c.Connect()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return names(cl, cmd.Context(), begin), cobra.ShellCompDirectiveNoFileComp
	}
}

// Errors of a question that was not answered with yes.
var (
	errNotConfirmed   = errors.New("nothing was changed")
	errNotInteractive = errors.New("nothing was changed: confirm it with --yes")
)

// Interactive reports whether the program can ask the user.
func Interactive(streams genericiooptions.IOStreams) bool {
	in, ok := streams.In.(*os.File)
	return ok && term.IsTerminal(int(in.Fd())) && terminal.IsTerminal(streams.ErrOut)
}

// AddYes adds --yes.
func (c *Command) AddYes(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&c.yes, "yes", "y", false, "do not ask")
}

// Confirm prints the lines about a question and prompts on a terminal, unless --yes answers. Without
// a terminal, its error names the flag to set.
func (c *Command) Confirm(question string, about ...string) error {
	if c.yes {
		return nil
	}
	for _, line := range about {
		fmt.Fprintln(c.Streams.ErrOut, terminal.Line(line))
	}
	if !Interactive(c.Streams) {
		return errNotInteractive
	}
	fmt.Fprint(c.Streams.ErrOut, terminal.Line(question)+" [y/N] ")
	return readAnswer(c.Streams.In)
}

// readAnswer reads the answer to a question. The end of the input counts as no.
func readAnswer(in io.Reader) error {
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the answer: %w", err)
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return errNotConfirmed
}

// FieldManager is the name that this program writes under.
const FieldManager = "kubectl-package"

// PrintTable prints rows. The first is the head.
func PrintTable(w io.Writer, rows [][]string) {
	for _, line := range terminal.Table(rows) {
		fmt.Fprintln(w, line)
	}
}

// Where describes the packages that the flags of a list select.
func Where(cl *cluster.Cluster, ofCluster, everywhere bool) string {
	switch {
	case everywhere:
		return "at all"
	case ofCluster:
		return "in the cluster as a whole"
	}
	return "in namespace " + cl.Namespace
}

// ClusterWide fills columns of namespaces for cluster-scoped objects.
const ClusterWide = "(cluster)"

// MostNamed is the maximum number of objects that one line names.
const MostNamed = 10
