package catalogue

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/describe"
	"lockstep.run/lockstep/internal/cli/desired"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/limits"
)

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
