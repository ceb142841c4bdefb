package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/desired"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/kube/summary"
	"lockstep.run/lockstep/internal/objects"
)

// longestCause limits the width of the last column of list. status has the whole text.
const longestCause = 100

// listCommand is kubectl package list.
type listCommand struct {
	command.Command
	cluster, everywhere, notReady, outdated bool
}

// installedPackage is a row of list. Its JSON fields are stable.
type installedPackage struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`

	// Package is the last unpacked one. Before that, it is the package or image in the spec.
	Package string `json:"package"`
	// Version is the one in charge, or else the last unpacked one.
	Version string          `json:"version,omitempty"`
	State   summary.Summary `json:"state"`

	// Message is the reason why a package is not available, and Remedy is a way to fix it.
	Message  string      `json:"message,omitempty"`
	Remedy   string      `json:"remedy,omitempty"`
	Revision int64       `json:"revision,omitempty"`
	Created  metav1.Time `json:"created"`
}

// newList returns the command list.
func newList(on command.Command) *cobra.Command {
	c := &listCommand{Command: on}
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"},
		SuggestFor: []string{"installed"},
		Short:      "List installed packages, with version, state and cause",
		Long: `List the Packages of the namespace and the ClusterPackages, with version, state, and the cause if one is not
available. Packages that need help are first. To follow changes: kubectl get packages -w.

--outdated lists packages that follow repositories and are not at the newest version: the installed version,
the one that the constraint allows, the newest one, and why they are not updated. Packages that can be
installed are listed by kubectl package available.`,
		Example: `  kubectl package list -A --not-ready
  kubectl package list -o json | jq -r '.[] | select(.state != "Available") | .name'`,
		Args: command.Takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := c.Output.Check()
			if c.cluster && c.everywhere {
				err = cmp.Or(err, errors.New("--all-namespaces includes --cluster: leave one of them out"))
			}
			if c.outdated && c.notReady {
				err = cmp.Or(err, errors.New("--outdated has a list of its own: leave out --not-ready"))
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
	cmd.Flags().BoolVarP(&c.everywhere, "all-namespaces", "A", false, "list the packages of all namespaces")
	cmd.Flags().BoolVar(&c.notReady, "not-ready", false, "only list packages that are not available as their spec requires")
	cmd.Flags().BoolVar(&c.outdated, "outdated", false, "only list packages that are not at their newest version, and why")
	c.Output.Add(cmd)

	return cmd
}

// run prints the selected packages.
func (c *listCommand) run(ctx context.Context) error {
	cl, err := c.Connect()
	if err != nil {
		return err
	}
	found, forbidden, err := c.gather(ctx, cl)
	if err != nil {
		return err
	}

	if c.outdated {
		return c.listOutdated(ctx, cl, found)
	}
	rows := c.rows(found)
	if c.Output.Wanted() {
		return c.Output.Print(c.Streams.Out, rows)
	}

	c.WarnOfSilence(ctx, cl)
	switch {
	case len(rows) > 0:
		command.PrintTable(c.Streams.Out, listTable(rows, time.Now()))
	case len(found) > 0:
		fmt.Fprintln(c.Streams.ErrOut, terminal.Line("Every package "+command.Where(cl, c.cluster, c.everywhere)+" is available"))
	default:
		fmt.Fprintln(c.Streams.ErrOut, terminal.Line("No package is installed "+command.Where(cl, c.cluster, c.everywhere)+". To see the packages that can be installed: kubectl package available"))
	}

	if len(forbidden) > 0 {
		fmt.Fprintf(c.Streams.ErrOut, "Not listed, because it is forbidden: %s\n", terminal.Line(strings.Join(forbidden, ", ")))
	}
	return nil
}

// listOutdated lists the packages that are not at their newest version.
func (c *listCommand) listOutdated(ctx context.Context, cl *cluster.Cluster, found []corev1alpha1.GenericPackage) error {
	rows, byImage, err := desired.OutdatedOf(ctx, cl, found)
	switch {
	case err != nil:
		return err
	case c.Output.Wanted():
		return c.Output.Print(c.Streams.Out, rows)
	}

	if byImage > 0 {
		fmt.Fprintf(c.Streams.ErrOut, "note: %s by image follow no repository\n", terminal.Count(byImage, "package"))
	}
	if len(rows) == 0 {
		fmt.Fprintln(c.Streams.Out, "Nothing is outdated")
		return nil
	}

	table := [][]string{{"NAMESPACE", "NAME", "PACKAGE", "INSTALLED", "WANTED", "NEWEST", "WHY"}}
	for _, r := range rows {
		table = append(table, []string{
			cmp.Or(r.Namespace, command.ClusterWide), r.Name, terminal.Line(r.Package), terminal.Line(cmp.Or(r.Installed, "-")),
			terminal.Line(cmp.Or(r.Wanted, "-")), terminal.Line(cmp.Or(r.Newest, "-")), terminal.Line(r.Why),
		})
	}

	command.PrintTable(c.Streams.Out, table)
	return nil
}

// gather reads the packages that the flags select. forbidden names those that the user may not
// list.
func (c *listCommand) gather(ctx context.Context, cl *cluster.Cluster) (found []corev1alpha1.GenericPackage, forbidden []string, err error) {
	if c.everywhere {
		return cl.Packages(ctx)
	}
	if !c.cluster {
		if found, err = cl.PackagesOf(ctx, corev1alpha1.ScopeNamespaced, cl.Namespace); err != nil {
			return nil, nil, cl.Explain("cannot read the packages", err)
		}
	}

	ofCluster, err := cl.PackagesOf(ctx, corev1alpha1.ScopeCluster, "")
	// Many users may not list ClusterPackages, so the list goes on without them.
	if apierrors.IsForbidden(err) && !c.cluster {
		return found, append(forbidden, "ClusterPackages"), nil
	}
	return append(found, ofCluster...), forbidden, cl.Explain("cannot read the clusterpackages", err)
}

// rows returns the selected packages. Packages that need help are first, followed by those that are
// under way.
func (c *listCommand) rows(found []corev1alpha1.GenericPackage) []installedPackage {
	rows := []installedPackage{}
	for _, pkg := range found {
		if row := installedOne(pkg); !c.notReady || row.State != summary.Available {
			rows = append(rows, row)
		}
	}
	slices.SortStableFunc(rows, func(a, b installedPackage) int { return cmp.Compare(a.State.Urgency(), b.State.Urgency()) })
	return rows
}

// installedOne returns the row of a package.
func installedOne(pkg corev1alpha1.GenericPackage) installedPackage {
	spec, t := pkg.PackageSpec(), progress.TargetOf(pkg)
	report := progress.ReportOf(progress.Snapshot{Target: t, Package: pkg})
	row := installedPackage{
		Kind: t.Kind(), Namespace: t.Namespace, Name: t.Name, Package: spec.Image, Version: report.Version, Revision: pkg.PackageStatus().Revision,
		State: report.Summary, Created: pkg.GetCreationTimestamp(),
	}
	if row.State != summary.Available {
		row.Message, row.Remedy = report.Message, report.Remedy
	}

	if spec.PackageRef != nil {
		row.Package = progress.SubjectOf(pkg)
	}
	if r := pkg.PackageStatus().Resolved; r != nil {
		row.Package = cmp.Or(r.CatalogName, r.PackageName, row.Package)
	}

	return row
}

// listTable returns the rows as a table. Messages are cut to one line.
func listTable(rows []installedPackage, now time.Time) [][]string {
	table := [][]string{{"NAMESPACE", "NAME", "PACKAGE", "VERSION", "STATE", "REVISION", "AGE", "WAITS FOR"}}
	for _, r := range rows {
		waits := r.Message
		if r.Remedy != "" {
			waits += ". " + r.Remedy
		}
		table = append(table, []string{
			cmp.Or(r.Namespace, command.ClusterWide), r.Name, terminal.Line(r.Package), terminal.Line(cmp.Or(r.Version, "-")), r.State.Words(),
			strconv.FormatInt(r.Revision, 10), duration.HumanDuration(now.Sub(r.Created.Time)),
			objects.TruncateTo(terminal.Line(strings.Join(strings.Fields(waits), " ")), longestCause),
		})
	}

	return table
}
