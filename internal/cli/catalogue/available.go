package catalogue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/desired"
	"lockstep.run/lockstep/internal/cli/terminal"
)

// availableCommand is kubectl package available.
type availableCommand struct {
	command.Command
	cluster, everywhere bool
	schema, example     bool
}

// newAvailable returns the command available.
func newAvailable(on command.Command) *cobra.Command {
	c := &availableCommand{Command: on}
	cmd := &cobra.Command{
		Use:        "available [NAME[/VERSION]]",
		SuggestFor: []string{"search", "show"},
		Short:      "Show the packages that can be installed, with their versions and values",
		Long: `List the packages that can be installed in the namespace, from its own repositories and the cluster's. The
version is the default: the highest one that works here and is not a prerelease.

With NAME, show the versions of a package, the highest first, and why one cannot be installed here; with
a version also, its release notes, licences, dependencies, APIs and constraints.

--values prints an example of the values as YAML. Required values and those with defaults are set; the rest
is commented out, and passwords are empty. --values-schema lists the keys. Both are of the newest version
unless one is named. For a folder or an image see kubectl package inspect.`,
		Example: `  kubectl package available
  kubectl package available shop.example.com/1.2.0
  kubectl package available shop.example.com --values > shop.yaml`,
		Args: command.Takes("[NAME[/VERSION]]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, version, err := c.named(args)
			if err = cmp.Or(err, c.Output.Check()); err != nil {
				return command.UsageError(cmd, err)
			}
			cl, err := c.Connect()
			switch {
			case err != nil:
				return err
			case name == "":
				return c.list(cmd.Context(), cl)
			}
			return c.one(cmd.Context(), cl, name, version)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}

	c.Connects(cmd)
	cmd.Flags().BoolVar(&c.cluster, "cluster", false, "list only packages from the cluster's repositories, as for a ClusterPackage")
	cmd.Flags().BoolVarP(&c.everywhere, "all-namespaces", "A", false, "list packages from the repositories of all namespaces")
	cmd.Flags().BoolVar(&c.example, "values", false, "print an example of the values")
	cmd.Flags().BoolVar(&c.schema, "values-schema", false, "show the keys of the values")
	c.Output.Add(cmd)

	return cmd
}

// named divides NAME[/VERSION]; both are empty for a list.
func (c *availableCommand) named(args []string) (name, version string, err error) {
	switch {
	case len(args) == 0 && (c.schema || c.example):
		return "", "", errors.New("NAME is missing: name the package")
	case len(args) == 0:
		return "", "", nil
	case c.everywhere:
		return "", "", errors.New("--all-namespaces lists packages: leave out NAME")
	}
	name, version, slash := strings.Cut(args[0], "/")
	if name == "" || slash && version == "" || strings.Contains(version, "/") {
		return "", "", fmt.Errorf("%q is neither NAME nor NAME/VERSION of a package", args[0])
	}
	return name, strings.TrimPrefix(version, "v"), nil
}

// availablePackage is a row of the list.
type availablePackage struct {
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name"`
	DisplayName string `json:"displayName,omitempty"`
	Description string `json:"shortDescription,omitempty"`

	// Newest is the version that is installed if none is requested.
	Newest     string `json:"newest"`
	Repository string `json:"repository"`
	Versions   int    `json:"versions"`
}

// list prints the packages that can be installed. An empty list is not an error.
func (c *availableCommand) list(ctx context.Context, cl *cluster.Cluster) error {
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

// gather returns the rows of the list.
func (c *availableCommand) gather(ctx context.Context, cl *cluster.Cluster) ([]availablePackage, error) {
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
				continue // it is listed with the cluster's
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

// offering returns the namespaces with repositories. The first is "", for the cluster.
func offering(ctx context.Context, cl *cluster.Cluster) ([]string, error) {
	// Metadata suffices, because only the namespaces are needed.
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1alpha1.GroupVersion.WithKind("AvailablePackageList"))
	if err := cl.List(ctx, list); err != nil && !apierrors.IsForbidden(err) {
		return nil, cl.Explain("cannot read the offers of repositories", err)
	}

	namespaces := []string{""}
	for i := range list.Items {
		namespaces = append(namespaces, list.Items[i].Namespace)
	}

	slices.Sort(namespaces)
	return slices.Compact(namespaces), nil
}
