package catalogue

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/desired"
	"lockstep.run/lockstep/internal/cli/terminal"
)

type outdatedCommand struct {
	command.Command
	everywhere, all bool
}

func newOutdated(on command.Command) *cobra.Command {
	c := &outdatedCommand{Command: on}
	cmd := &cobra.Command{
		Use:   "outdated",
		Short: "List the packages that are not at their newest version, and why they do not move",
		Long: `List the packages of the namespace and the ClusterPackages that follow repositories and are not at the
newest version: the installed version, the one that the constraint allows, the newest one, and why they do
not move. Packages by image are not listed.`,
		Args: command.Takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.Output.Check(); err != nil {
				return command.UsageError(cmd, err)
			}
			return c.run(cmd.Context())
		},
	}
	c.Connects(cmd)
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	cmd.Flags().BoolVarP(&c.everywhere, "all-namespaces", "A", false, "those of all namespaces")
	cmd.Flags().BoolVar(&c.all, "all", false, "also those that are at their newest version")
	c.Output.Add(cmd)
	return cmd
}

func (c *outdatedCommand) run(ctx context.Context) error {
	cl, err := c.Connect()
	if err != nil {
		return err
	}
	rows, byImage, err := c.gather(ctx, cl)
	if err != nil {
		return err
	}
	if c.Output.Wanted() {
		return c.Output.Print(c.Streams.Out, rows)
	}
	if byImage > 0 {
		fmt.Fprintf(c.Streams.ErrOut, "note: %s by image, which follow no repository\n", terminal.Count(byImage, "package"))
	}
	if len(rows) == 0 {
		fmt.Fprintln(c.Streams.Out, "Nothing is outdated")
		return nil
	}
	table := [][]string{{"NAMESPACE", "NAME", "PACKAGE", "INSTALLED", "WANTED", "NEWEST", "WHY"}}
	for _, r := range rows {
		cells := []string{cmp.Or(r.Namespace, command.ClusterWide), r.Name, r.Package, cmp.Or(r.Installed, "-"), cmp.Or(r.Wanted, "-"), cmp.Or(r.Newest, "-"), r.Why}
		for i := range cells {
			cells[i] = terminal.Line(cells[i])
		}
		table = append(table, cells)
	}
	command.PrintTable(c.Streams.Out, table)
	return nil
}

func (c *outdatedCommand) gather(ctx context.Context, cl *cluster.Cluster) (rows []desired.Outdated, byImage int, err error) {
	var all []corev1alpha1.GenericPackage
	for _, scope := range []corev1alpha1.Scope{corev1alpha1.ScopeNamespaced, corev1alpha1.ScopeCluster} {
		list := scope.NewPackageList()
		err := cl.List(ctx, list, client.InNamespace(map[bool]string{true: command.ListNamespace(cl, c.everywhere)}[scope == corev1alpha1.ScopeNamespaced]))
		if apierrors.IsForbidden(err) && scope == corev1alpha1.ScopeCluster {
			continue
		}
		if err != nil {
			return nil, 0, cl.Explain("cannot read the packages", err)
		}
		all = append(all, list.GenericPackages()...)
	}
	return desired.OutdatedOf(ctx, cl, all, c.all)
}
