package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
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

// dialer connects to a cluster; cluster.Connect except in tests.
type dialer func(genericclioptions.RESTClientGetter, io.Writer) (*cluster.Cluster, error)

// command is shared by all commands about a cluster.
type command struct {
	streams genericiooptions.IOStreams
	dial    dialer
	flags   *genericclioptions.ConfigFlags
	output  output.Flags
	wait    bool
	timeout time.Duration
}

// connects adds kubectl's flags, except --cluster, which selects cluster packages.
func (c *command) connects(cmd *cobra.Command) {
	c.flags = genericclioptions.NewConfigFlags(false)
	c.flags.ClusterName, c.flags.CacheDir = nil, nil
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	c.flags.AddFlags(own)
	usage := map[string]string{
		"namespace":  "the `namespace`, instead of the context's",
		"context":    "the `context` of the kubeconfig, instead of its current one",
		"kubeconfig": "the kubeconfig `file`, instead of KUBECONFIG's",
	}
	own.VisitAll(func(f *pflag.Flag) {
		// kubectl options explains the hidden ones.
		f.Usage, f.Hidden = usage[f.Name], usage[f.Name] == ""
	})
	cmd.Flags().AddFlagSet(own)
	if cmd.ValidArgsFunction == nil {
		cmd.ValidArgsFunction = c.completeNames
	}
}

// onSource completes a command about a folder or an image; checks are of its flags.
func onSource(cmd *cobra.Command, run func(ctx context.Context, source string) error, checks ...func() error) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		for _, check := range checks {
			if err := check(); err != nil {
				return usageError(cmd, err)
			}
		}
		return run(cmd.Context(), args[0])
	}
	return cmd
}

// about completes a command whose arguments name one package or deployment.
func (c *command) about(
	cmd *cobra.Command, parse func([]string) (cluster.Name, error), run func(context.Context, cluster.Name) error, checks ...func() error,
) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		n, err := parse(args)
		err = cmp.Or(err, c.output.Check())
		for _, check := range checks {
			err = cmp.Or(err, check())
		}
		if err != nil {
			return usageError(cmd, err)
		}
		return run(cmd.Context(), n)
	}
	c.connects(cmd)
	return cmd
}

func (c *command) addTimeout(cmd *cobra.Command, fallback time.Duration, usage string) {
	cmd.Flags().DurationVar(&c.timeout, "timeout", fallback, usage)
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if c.timeout <= 0 {
			return usageError(cmd, errors.New("--timeout must be positive"))
		}
		return nil
	}
}

func (c *command) addWait(cmd *cobra.Command, fallback time.Duration, usage string) {
	cmd.Flags().BoolVar(&c.wait, "wait", true, usage)
	c.addTimeout(cmd, fallback, "how long to wait")
}

func (c *command) connect() (*cluster.Cluster, error) { return c.dial(c.flags, c.streams.ErrOut) }

func (c *command) find(ctx context.Context, n cluster.Name) (*cluster.Cluster, progress.Target, corev1alpha1.GenericPackage, error) {
	cl, err := c.connect()
	if err != nil {
		return nil, progress.Target{}, nil, err
	}
	target, pkg, err := cl.Find(ctx, n)
	return cl, target, pkg, err
}

func (c *command) rollout(ctx context.Context, n cluster.Name) (*cluster.Cluster, *cluster.Rollout, error) {
	cl, err := c.connect()
	if err != nil {
		return nil, nil, err
	}
	r, err := cl.Rollout(ctx, n)
	return cl, r, err
}

// warnOfSilence warns on stderr where no manager runs, at the cost of one request. Programs,
// which read -o, are spared both.
func (c *command) warnOfSilence(ctx context.Context, cl *cluster.Cluster) {
	if c.output.Wanted() {
		return
	}
	if silence := cl.ManagerSilence(ctx, time.Now()); silence > 0 {
		fmt.Fprintf(c.streams.ErrOut, "Warning: no manager has renewed its Lease for %s, so this may be outdated: is lockstep-manager running?\n",
			duration.HumanDuration(silence))
	}
}

// completeSource completes a folder or a name, and then names up to a number of arguments.
func (c *command) completeSource(most int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begin string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names, end := c.completeNames(cmd, nil, begin)
		if len(args) == 0 {
			end = cobra.ShellCompDirectiveDefault
		}
		return names, end
	}
}

func (c *command) completeNames(cmd *cobra.Command, args []string, begin string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	cl, err := c.connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return cl.Complete(cmd.Context(), begin), cobra.ShellCompDirectiveNoFileComp
}

var (
	errNotConfirmed   = errors.New("nothing was changed")
	errNotInteractive = errors.New("nothing was changed: confirm it by --yes")
)

func interactive(streams genericiooptions.IOStreams) bool {
	in, ok := streams.In.(*os.File)
	return ok && term.IsTerminal(int(in.Fd())) && terminal.IsTerminal(streams.ErrOut)
}

// confirm prompts on a terminal; elsewhere its error names the flag to set.
func confirm(streams genericiooptions.IOStreams, question string) error {
	if !interactive(streams) {
		return errNotInteractive
	}
	fmt.Fprint(streams.ErrOut, terminal.Line(question)+" [y/N] ")
	return readAnswer(streams.In)
}

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
