package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/output"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
)

type listCommand struct {
	command.Command
	cluster, everywhere bool
}

// installedPackage is a row of list. Its JSON fields are stable.
type installedPackage struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Package and Version that were unpacked last; before that, the package or the image that the spec names.
	Package  string           `json:"package"`
	Version  string           `json:"version,omitempty"`
	State    progress.Summary `json:"state"`
	Revision int64            `json:"revision,omitempty"`
	Created  metav1.Time      `json:"created"`
}

func newList(on command.Command) *cobra.Command {
	c := &listCommand{Command: on}
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"},
		Short: "List what is installed: package, version and state",
		Long: `List the Packages of the namespace and the ClusterPackages: which package each is, in which version,
and how it stands. What can be installed is listed by kubectl package available list, what is not at
its newest version by kubectl package outdated.`,
		Example: `  kubectl package list -A
  kubectl package list --query '.[] | select(.state != "Available") | .name'`,
		Args: command.Takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := c.Output.Check()
			if c.cluster && c.everywhere {
				err = cmp.Or(err, errors.New("--all-namespaces contains what --cluster selects: leave one of them out"))
			}
			if err != nil {
				return command.UsageError(cmd, err)
			}
			return c.run(cmd.Context())
		},
	}
	c.Connects(cmd)
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	cmd.Flags().BoolVar(&c.cluster, "cluster", false, "ClusterPackages alone")
	cmd.Flags().BoolVarP(&c.everywhere, "all-namespaces", "A", false, "those of all namespaces")
	c.Output.Add(cmd, output.Names)
	return cmd
}

func (c *listCommand) run(ctx context.Context) error {
	cl, err := c.Connect()
	if err != nil {
		return err
	}
	found, err := c.gather(ctx, cl)
	if err != nil {
		return err
	}
	rows, objects := []installedPackage{}, output.List{}
	for _, pkg := range found {
		rows, objects.Items = append(rows, installedOne(pkg)), append(objects.Items, command.Published(pkg))
	}
	switch {
	case c.Output.ByName():
		return c.Output.Print(ctx, c.Streams.Out, objects)
	case c.Output.Wanted():
		return c.Output.Print(ctx, c.Streams.Out, rows)
	}
	c.WarnOfSilence(ctx, cl)
	if len(rows) == 0 {
		fmt.Fprintln(c.Streams.ErrOut, terminal.Line("No package is installed "+command.Where(cl, c.cluster, c.everywhere)+". What can be: kubectl package available list"))
		return nil
	}
	command.PrintTable(c.Streams.Out, listTable(rows, time.Now()))
	return nil
}

func (c *listCommand) gather(ctx context.Context, cl *cluster.Cluster) (found []corev1alpha1.GenericPackage, err error) {
	if !c.cluster {
		if found, err = cl.PackagesOf(ctx, corev1alpha1.ScopeNamespaced, command.ListNamespace(cl, c.everywhere)); err != nil {
			return nil, cl.Explain("cannot read the packages", err)
		}
	}
	ofCluster, err := cl.PackagesOf(ctx, corev1alpha1.ScopeCluster, "")
	if apierrors.IsForbidden(err) && !c.cluster {
		return found, nil
	}
	return append(found, ofCluster...), cl.Explain("cannot read the clusterpackages", err)
}

func installedOne(pkg corev1alpha1.GenericPackage) installedPackage {
	scope, spec := corev1alpha1.ScopeOf(pkg.GetNamespace()), pkg.PackageSpec()
	t := progress.Target{Scope: scope, Namespace: pkg.GetNamespace(), Name: pkg.GetName()}
	row := installedPackage{
		Kind: t.Kind(), Namespace: t.Namespace, Name: t.Name, Package: spec.Image, Revision: pkg.PackageStatus().Revision,
		State: progress.Of(progress.Snapshot{Target: t, Package: pkg}).Summary(), Created: pkg.GetCreationTimestamp(),
	}
	if spec.PackageRef != nil {
		row.Package = spec.PackageRef.Name
	}
	if r := pkg.PackageStatus().Resolved; r != nil {
		row.Package, row.Version = cmp.Or(r.CatalogName, r.PackageName, row.Package), r.Version
	}
	return row
}

func listTable(rows []installedPackage, now time.Time) [][]string {
	table := [][]string{{"NAMESPACE", "NAME", "PACKAGE", "VERSION", "STATE", "REVISION", "AGE"}}
	for _, r := range rows {
		table = append(table, []string{
			cmp.Or(r.Namespace, command.ClusterWide), r.Name, terminal.Line(r.Package), terminal.Line(cmp.Or(r.Version, "-")), r.State.Words(),
			strconv.FormatInt(r.Revision, 10), duration.HumanDuration(now.Sub(r.Created.Time)),
		})
	}
	return table
}
