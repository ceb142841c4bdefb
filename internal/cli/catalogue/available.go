package catalogue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/describe"
	"lockstep.run/lockstep/internal/cli/desired"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/limits"
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

// availableReport is a package with its versions, as JSON and YAML.
type availableReport struct {
	Name     string                       `json:"name"`
	Display  *corev1alpha1.PackageDisplay `json:"display,omitempty"`
	Versions []availableVersionReport     `json:"versions"`
}

// availableVersionReport is one version.
type availableVersionReport struct {
	corev1alpha1.AvailableVersion `json:",inline"`
	// Source is the repository with its kind, such as PackageRepository/stable.
	Source string `json:"source"`
	// NotHere is the reason why the version cannot be installed here; empty if it can.
	NotHere string `json:"notHere,omitempty"`
}

// one prints a package with all of its versions, or one version with its details.
func (c *availableCommand) one(ctx context.Context, cl *cluster.Cluster, name, version string) error {
	choose := desired.ChooserFor(cl, map[bool]string{false: cl.Namespace}[c.cluster])
	// Prereleases are shown, too, with the reason why they are not chosen by themselves.
	found, err := choose.Choose(ctx, name, versions.Request{Selection: corev1alpha1.VersionSelection{Prereleases: &corev1alpha1.Prereleases{}}})
	if err != nil {
		return err
	}
	if len(found.Offered) == 0 {
		return choose.Unknown(ctx, name)
	}

	if version == "" && (c.schema || c.example) {
		_, newest, err := choose.Newest(ctx, name)
		if err != nil {
			return err
		}
		version = newest.Version.Version
	}

	report, known := &availableReport{Name: name, Display: found.Display}, []string{}
	why := found.Why()
	for _, o := range desired.NewestFirst(found.Offered) {
		v := availableVersionReport{AvailableVersion: o.Version, Source: o.Source(), NotHere: why[o.Version.Version]}
		if parsed, err := versions.Parse(v.Version); err == nil && parsed.Prerelease() != "" && v.NotHere == "" {
			v.NotHere = "is a prerelease: add --prereleases to include it"
		}
		known = append(known, v.Version)
		if version == "" || v.Version == version {
			report.Versions = append(report.Versions, v)
		}
	}

	switch {
	case len(report.Versions) == 0:
		return fmt.Errorf("version %s of %s is not offered; the offered versions are: %s", version, name, strings.Join(known[:min(len(known), limits.VersionsNamed)], ", "))
	case c.schema || c.example:
		return c.values(name, &report.Versions[0].AvailableVersion)
	}
	return c.Output.Write(c.Streams.Out, report, func(styles terminal.Styles) string {
		t := &availableWriter{terminal.Writer{Styles: styles}}
		t.head(report)
		if version != "" {
			t.version(&report.Versions[0])
		} else {
			t.versions(report)
		}
		return t.String()
	})
}

// values prints the keys of the values of a version, or an example.
func (c *availableCommand) values(name string, v *corev1alpha1.AvailableVersion) error {
	if v.ConfigSchema == nil {
		fmt.Fprintln(c.Streams.ErrOut, terminal.Line("note: "+name+" "+v.Version+" has no schema for its values"))
	}

	schema, err := desired.SchemaOf(v.ConfigSchema)
	if err != nil {
		return fmt.Errorf("the schema of %s %s cannot be read: %w", name, v.Version, err)
	}
	if c.example {
		_, err := io.WriteString(c.Streams.Out, describe.Example(schema))
		return err
	}

	keys := describe.ConfigKeys(schema)
	return c.Output.Write(c.Streams.Out, keys, func(styles terminal.Styles) string {
		return styles.Strong(terminal.Line(name+" "+v.Version)) + "\n" + describe.ConfigText(keys, styles)
	})
}

// availableWriter collects the text of a package. It escapes all texts, because repositories choose
// them.
type availableWriter struct{ terminal.Writer }

// field writes a line with a name and a value, unless the value is empty.
func (t *availableWriter) field(name, value string) {
	t.Field(11, name, terminal.Line(strings.TrimSpace(value)))
}

// text prints several lines below a title.
func (t *availableWriter) text(title, text string) {
	if text = strings.TrimSpace(text); text == "" {
		return
	}
	t.Line(t.Styles.Strong(title))
	for line := range strings.Lines(terminal.Text(text)) {
		t.Line("  " + strings.TrimRight(line, "\n"))
	}
}

// head writes the name and the texts for a catalogue.
func (t *availableWriter) head(r *availableReport) {
	t.Line(t.Styles.Strong(terminal.Line(r.Name)))
	d := r.Display
	if d == nil {
		return
	}
	t.field("Is", strings.TrimPrefix(strings.TrimSuffix(d.Name+": "+d.ShortDescription, ": "), ": "))
	t.field("Provider", d.Provider)
	t.field("Maintainers", strings.Join(d.Maintainers, ", "))
	t.field("Categories", strings.Join(d.Categories, ", "))
	t.field("Keywords", strings.Join(d.Keywords, ", "))
	t.field("Owners", strings.Join(d.Owners, ", "))
	for i, link := range d.Links {
		t.field(map[bool]string{true: "Links"}[i == 0], link.Name+": "+link.URL)
	}

	t.field("Support", d.Support)
}

// versions writes the description and a table of the versions.
func (t *availableWriter) versions(r *availableReport) {
	if r.Display != nil {
		t.text("Description", r.Display.LongDescription)
	}
	rows := [][]string{{"VERSION", "RELEASED", "REPOSITORY", "NOT HERE, BECAUSE"}}
	for _, v := range r.Versions {
		date := ""
		if v.Release != nil {
			date, _, _ = strings.Cut(v.Release.Date, "T")
		}
		rows = append(rows, []string{terminal.Line(v.Version), terminal.Line(date), terminal.Line(v.Source), terminal.Line(v.NotHere)})
	}

	t.Line(t.Styles.Strong("Versions"))
	t.Rows("  ", rows)
}

// version writes the details of one version.
func (t *availableWriter) version(v *availableVersionReport) {
	release := v.Release
	if release == nil {
		release = &corev1alpha1.PackageRelease{}
	}
	t.field("Version", v.Version)
	t.field("Not here", v.NotHere)
	t.field("Retracted", v.Retracted)
	t.field("Repository", v.Source)
	t.field("Image", cmp.Or(v.Image, map[bool]string{true: terminal.Count(len(v.Files), "file") + " of the repository"}[len(v.Files) > 0]))
	t.field("Released", release.Date)
	t.field("Licenses", strings.Join(release.Licenses, ", "))
	t.field("Requires", release.Requirements)
	t.field("Only", constraintsText(v.Constraints))
	t.requirements(v)

	if v.ConfigSchema != nil {
		t.field("Values", "see --values-schema, or --values")
	}

	t.text("Release notes", release.Notes)
}

// requirements prints the dependencies of a version, the APIs it brings, and how often it can be
// installed.
func (t *availableWriter) requirements(v *availableVersionReport) {
	if len(v.Scopes) == 1 { // otherwise both are possible
		t.field("Installs as", v.Scopes[0].Kind("Package"))
	}
	if v.UniqueInScope != "" {
		t.field("At most", "one in a "+strings.ToLower(string(v.UniqueInScope)))
	}
	for i, d := range v.Dependencies {
		t.field(map[bool]string{true: "Depends on"}[i == 0], describe.Dependency(d))
	}

	apis := make([]string, len(v.Provides))
	for i, api := range v.Provides {
		apis[i] = describe.API(api)
	}

	t.field("Provides", strings.Join(apis, ", "))
}

// constraintsText returns the constraints of a version in one line.
func constraintsText(all []corev1alpha1.AvailableConstraint) string {
	var out []string
	for _, c := range all {
		if len(c.Platforms) > 0 {
			out = append(out, "on "+strings.Join(c.Platforms, " or "))
		}
		if c.Platform != "" {
			out = append(out, c.Platform+" "+c.Range)
		}
	}
	return strings.Join(out, "; ")
}
