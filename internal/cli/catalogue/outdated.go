package catalogue

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/desired"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
)

type outdatedCommand struct {
	command.Command
	everywhere, all bool
}

// outdatedPackage is a row of outdated.
type outdatedPackage struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Package   string `json:"package"`
	// Constraint of spec.packageRef.version.
	Constraint string `json:"constraint,omitempty"`
	Installed  string `json:"installed,omitempty"`
	// Wanted is the version that the constraint leads to, Newest the highest release of all.
	Wanted string `json:"wanted,omitempty"`
	Newest string `json:"newest,omitempty"`
	// Why it does not move, or not further.
	Why string `json:"why,omitempty"`
}

func newOutdated(on command.Command) *cobra.Command {
	c := &outdatedCommand{Command: on}
	cmd := &cobra.Command{
		Use:   "outdated",
		Short: "List the packages that are not at their newest version, and why they do not move",
		Long: `List the packages of the namespace and the ClusterPackages that follow repositories and are not at
the newest version: what is installed, what their constraint leads to, what is the newest of all,
and why they do not move, or not further. Packages by image follow nothing and are not listed.`,
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
		return c.Output.Print(ctx, c.Streams.Out, rows)
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

func (c *outdatedCommand) gather(ctx context.Context, cl *cluster.Cluster) (rows []outdatedPackage, byImage int, err error) {
	rows = []outdatedPackage{}
	type at struct {
		namespace string
		target    corev1alpha1.TargetReference
	}
	choosers := map[at]*desired.Chooser{}
	for _, scope := range []corev1alpha1.Scope{corev1alpha1.ScopeNamespaced, corev1alpha1.ScopeCluster} {
		list := scope.NewPackageList()
		err := cl.List(ctx, list, client.InNamespace(map[bool]string{true: command.ListNamespace(cl, c.everywhere)}[scope == corev1alpha1.ScopeNamespaced]))
		if apierrors.IsForbidden(err) && scope == corev1alpha1.ScopeCluster {
			continue
		}
		if err != nil {
			return nil, 0, cl.Explain("cannot read the packages", err)
		}
		for _, pkg := range list.GenericPackages() {
			if pkg.PackageSpec().PackageRef == nil {
				byImage++
				continue
			}
			target := pkg.PackageSpec().TargetRef
			key := at{pkg.GetNamespace(), ptr.Deref(target, corev1alpha1.TargetReference{})}
			if choosers[key] == nil {
				choosers[key] = desired.ChooserFor(cl, pkg.GetNamespace()).At(target)
			}
			row, err := outdated(ctx, choosers[key], pkg)
			if err != nil {
				return nil, 0, err
			}
			if c.all || row.Why != "" || row.Installed != row.Wanted {
				rows = append(rows, row)
			}
		}
	}
	return rows, byImage, nil
}

// outdated compares what is installed with what is offered.
func outdated(ctx context.Context, choose *desired.Chooser, pkg corev1alpha1.GenericPackage) (outdatedPackage, error) {
	ref := pkg.PackageSpec().PackageRef
	row := outdatedPackage{Namespace: pkg.GetNamespace(), Name: pkg.GetName(), Package: ref.Name, Constraint: ref.Version}
	request := desired.RequestFor(pkg, &desired.Package{Ref: ref})
	row.Installed = request.Installed
	found, err := choose.Choose(ctx, ref.Name, request)
	if err != nil {
		return row, err
	}
	_, newest, err := choose.Newest(ctx, ref.Name)
	if err != nil {
		return row, err
	}
	if newest != nil {
		row.Newest = newest.Version.Version
	}
	if len(found.Offered) == 0 {
		row.Why = "no repository offers it any more"
		return row, nil
	}
	if v := found.Version(); v != nil {
		row.Wanted = v.Version.Version
	}
	row.Why = whyNot(found, pkg, row)
	return row, nil
}

// whyNot says why a package is not at the newest version; empty where it is.
func whyNot(found *desired.Chosen, pkg corev1alpha1.GenericPackage, row outdatedPackage) string {
	switch {
	case row.Wanted == "":
		return cmp.Or(found.Message, "no version fits")
	case row.Wanted != row.Installed && pkg.PackageSpec().Paused:
		return "it is paused"
	case row.Wanted != row.Installed:
		t := progress.TargetOf(pkg)
		switch s := progress.Of(progress.Snapshot{Target: t, Package: pkg}); s.Summary() {
		case progress.SummaryAvailable:
		case progress.SummaryUnsatisfied, progress.SummaryWaiting:
			first, _, _ := strings.Cut(s.Waiting, "\n")
			return s.Summary().Words() + ": " + first
		default:
			return s.Summary().Words()
		}
		return "it has not moved yet"
	case desired.CompareVersions(row.Newest, row.Wanted) > 0:
		return row.Newest + ": " + cmp.Or(found.Why()[row.Newest], "is not allowed by the constraint")
	}
	return ""
}
