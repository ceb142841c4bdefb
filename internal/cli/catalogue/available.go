package catalogue

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/desired"
	"lockstep.run/lockstep/internal/cli/terminal"
)

func newAvailable(on command.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "available",
		Short: "Show which packages can be installed, in which versions",
		Args:  command.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newAvailableList(on), newAvailableGet(on))
	return cmd
}

type availableListCommand struct {
	command.Command
	cluster, everywhere bool
}

// availablePackage is a row of the list.
type availablePackage struct {
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name"`
	DisplayName string `json:"displayName,omitempty"`
	Description string `json:"shortDescription,omitempty"`
	// Newest is the version that is installed where none is asked for.
	Newest     string `json:"newest"`
	Repository string `json:"repository"`
	Versions   int    `json:"versions"`
}

func newAvailableList(on command.Command) *cobra.Command {
	c := &availableListCommand{Command: on}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the packages that repositories offer to the namespace",
		Long: `List the packages that can be installed in the namespace, from its own repositories and the cluster's. The
version is the one that is installed by default: the highest that works here and is not a prerelease.`,
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
	cmd.Flags().BoolVar(&c.cluster, "cluster", false, "those of the cluster's repositories alone")
	cmd.Flags().BoolVarP(&c.everywhere, "all-namespaces", "A", false, "those of the repositories of all namespaces")
	c.Output.Add(cmd)
	return cmd
}

func (c *availableListCommand) run(ctx context.Context) error {
	cl, err := c.Connect()
	if err != nil {
		return err
	}
	found, err := c.gather(ctx, cl)
	if err != nil {
		return err
	}
	if c.Output.Wanted() {
		return c.Output.Print(c.Streams.Out, found)
	}
	if len(found) == 0 {
		namespace := map[bool]string{false: cl.Namespace}[c.cluster]
		fmt.Fprintln(c.Streams.ErrOut, "No package is offered. "+desired.ChooserFor(cl, namespace).NothingOffered())
		return nil
	}
	rows := [][]string{{"NAME", "DISPLAY NAME", "NEWEST", "REPOSITORY"}}
	if c.everywhere {
		rows[0] = append([]string{"NAMESPACE"}, rows[0]...)
	}
	for _, p := range found {
		row := []string{terminal.Line(p.Name), terminal.Line(p.DisplayName), terminal.Line(p.Newest), terminal.Line(p.Repository)}
		if c.everywhere {
			row = append([]string{cmp.Or(p.Namespace, command.ClusterWide)}, row...)
		}
		rows = append(rows, row)
	}
	command.PrintTable(c.Streams.Out, rows)
	return nil
}

func (c *availableListCommand) gather(ctx context.Context, cl *cluster.Cluster) ([]availablePackage, error) {
	namespaces := []string{cl.Namespace}
	if c.cluster {
		namespaces = []string{""}
	} else if c.everywhere {
		var err error
		if namespaces, err = offering(ctx, cl); err != nil {
			return nil, err
		}
	}
	rows := []availablePackage{}
	for _, namespace := range namespaces {
		choose := desired.ChooserFor(cl, namespace)
		names, err := choose.All(ctx)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			of, newest, err := choose.Newest(ctx, name)
			if err != nil {
				return nil, err
			}
			if newest == nil || c.everywhere && namespace != "" && newest.Scope == corev1alpha1.ScopeCluster {
				continue // it is among those of the cluster
			}
			row := availablePackage{Name: name, Newest: newest.Version.Version, Repository: newest.Source(), Versions: len(of.Offered)}
			if c.everywhere {
				row.Namespace = namespace
			}
			if of.Display != nil {
				row.DisplayName, row.Description = of.Display.Name, of.Display.ShortDescription
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// offering returns the namespaces with repositories, after "" for the cluster.
func offering(ctx context.Context, cl *cluster.Cluster) ([]string, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1alpha1.GroupVersion.WithKind("AvailablePackageList"))
	if err := cl.List(ctx, list); err != nil && !apierrors.IsForbidden(err) {
		return nil, cl.Explain("cannot read what repositories offer", err)
	}
	namespaces := []string{""}
	for i := range list.Items {
		namespaces = append(namespaces, list.Items[i].Namespace)
	}
	slices.Sort(namespaces)
	return slices.Compact(namespaces), nil
}
