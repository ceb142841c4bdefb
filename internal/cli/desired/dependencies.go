package desired

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/content"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/loader/violation"
)

// DependencyFlags are about what a package depends on.
type DependencyFlags struct{ overrides []string }

// Add adds the flags to a command.
func (f *DependencyFlags) Add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.overrides, "override", nil,
		`change a dependency: `+"`NAME=JSON`"+` with a package{name, version, prereleases} or configFrom, such as db={"package":{"version":"<2"}}; may be repeated`)
	_ = cmd.RegisterFlagCompletionFunc("override", cobra.NoFileCompletions)
}

// Check returns an error of usage.
func (f *DependencyFlags) Check() error {
	_, err := f.wanted()
	return err
}

func (f *DependencyFlags) wanted() (overrides []corev1alpha1.DependencyOverride, err error) {
	for _, text := range f.overrides {
		o, err := parseOverride(text)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(overrides, func(other corev1alpha1.DependencyOverride) bool { return other.Name == o.Name }) {
			return nil, fmt.Errorf("--override %s is given twice: put all of it into one", o.Name)
		}
		overrides = append(overrides, o)
	}
	return overrides, nil
}

// parseOverride reads NAME=JSON, or YAML.
func parseOverride(text string) (o corev1alpha1.DependencyOverride, err error) {
	name, body, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return o, fmt.Errorf("--override %q has no NAME=: write --override 'db={\"package\":{\"version\":\"<2\"}}'", text)
	}
	raw, err := content.ParseConfig("--override "+name, []byte(body))
	if err != nil {
		return o, err
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&o); err != nil {
		return o, fmt.Errorf("--override %s: %s. It takes package{name, version, prereleases} and configFrom", name, strings.TrimPrefix(err.Error(), "json: "))
	}
	if o.Name != "" && o.Name != name {
		return o, fmt.Errorf("--override %s names another dependency, %s", name, o.Name)
	}
	if o.Name = name; o.Package == nil && len(o.ConfigFrom) == 0 {
		return o, fmt.Errorf("--override %s changes nothing: it takes package{name, version, prereleases} and configFrom", name)
	}
	if o.Package != nil {
		if _, err := versions.ParseConstraint(o.Package.Version); err != nil {
			return o, fmt.Errorf("--override %s: package.version: %w", name, err)
		}
	}
	return o, nil
}

// OverrideFlags gives --override:NAME=JSON the form --override=NAME=JSON.
func OverrideFlags(args []string) []string {
	const form = "--override:"
	args = slices.Clone(args)
	for i, arg := range args {
		if arg == "--" {
			break
		}
		if rest, is := strings.CutPrefix(arg, form); is {
			args[i] = "--override=" + rest
		}
	}
	return args
}

// withOverrides returns old with overrides merged in by their names, and of these the fields that are set.
func withOverrides(old *corev1alpha1.PackageDependencies, want []corev1alpha1.DependencyOverride) *corev1alpha1.PackageDependencies {
	if len(want) == 0 {
		return old
	}
	d := &corev1alpha1.PackageDependencies{}
	if old != nil {
		d = old.DeepCopy()
	}
	for _, o := range want {
		i := slices.IndexFunc(d.Overrides, func(other corev1alpha1.DependencyOverride) bool { return other.Name == o.Name })
		if i < 0 {
			d.Overrides = append(d.Overrides, o)
			continue
		}
		if o.Package != nil {
			d.Overrides[i].Package = o.Package
		}
		for _, from := range o.ConfigFrom {
			d.Overrides[i].ConfigFrom = WithValues(d.Overrides[i].ConfigFrom, &from)
		}
	}
	return d
}

// CheckDependencies refuses overrides of dependencies that a version does not have.
func CheckDependencies(version *corev1alpha1.AvailableVersion, overrides []corev1alpha1.DependencyOverride) error {
	var names []string
	for _, d := range version.Dependencies {
		names = append(names, d.Name)
	}
	for _, o := range overrides {
		switch {
		case slices.Contains(names, o.Name):
		case len(names) == 0:
			return fmt.Errorf("version %s has no dependencies, so there is no %s to override", version.Version, o.Name)
		default:
			return fmt.Errorf("version %s has no dependency %s. %s", version.Version, o.Name, violation.Suggest(o.Name, names, "It has: "+strings.Join(names, ", ")))
		}
	}
	return nil
}

// dependencyValues are the values of a package that is installed for a dependency.
type dependencyValues struct {
	name   string
	values *Values
}

// target is that of the object with the values: names of dependencies follow that of the package.
func (d *dependencyValues) target(t progress.Target) (progress.Target, error) {
	t.Name += "." + d.name
	if problems := validation.IsDNS1123Subdomain(t.Name + ValuesSuffix); len(problems) > 0 {
		return t, fmt.Errorf("the values of the dependency %s cannot be kept in %s%s: %s", d.name, t.Name, ValuesSuffix, problems[0])
	}
	return t, nil
}

// Depends adds what flags and values say of dependencies to a wanted package.
func (w *Package) Depends(t progress.Target, flags *DependencyFlags, values []dependencyValues) (err error) {
	if w.Overrides, err = flags.wanted(); err != nil {
		return err
	}
	w.DependencyValues = values
	for _, v := range values {
		at, err := v.target(t)
		if err != nil {
			return err
		}
		source := v.values.Source(at)
		i := slices.IndexFunc(w.Overrides, func(o corev1alpha1.DependencyOverride) bool { return o.Name == v.name })
		if i < 0 {
			w.Overrides = append(w.Overrides, corev1alpha1.DependencyOverride{Name: v.name})
			i = len(w.Overrides) - 1
		}
		w.Overrides[i].ConfigFrom = WithValues(w.Overrides[i].ConfigFrom, source)
	}
	return nil
}

// split divides values into documents: the first for the package, others for the dependency that their first comment names.
func (f *ValuesFlags) split(name string, text []byte) (own *Values, err error) {
	for i, doc := range documents(text) {
		values := &Values{Text: doc, Sensitive: f.sensitive}
		dependency := dependencyOf(doc)
		if dependency == "" && i > 0 {
			return nil, fmt.Errorf("document %d of %s names no dependency: begin it with the comment # dep=NAME, or put all values of the package into the first one", i+1, name)
		}
		about := name
		if dependency != "" {
			about, values.dependency = fmt.Sprintf("%s, dependency %s", name, dependency), true
		}
		if values.raw, err = content.ParseConfig(about, doc); err != nil {
			return nil, err
		}
		if dependency == "" {
			own = values
			continue
		}
		if slices.ContainsFunc(f.Dependencies, func(d dependencyValues) bool { return d.name == dependency }) {
			return nil, fmt.Errorf("%s has two documents for the dependency %s: put all of it into one", name, dependency)
		}
		f.Dependencies = append(f.Dependencies, dependencyValues{dependency, values})
	}
	if own == nil && len(f.Dependencies) == 0 {
		own = &Values{Text: text, raw: []byte("{}"), Sensitive: f.sensitive}
	}
	return own, nil
}

// documents splits YAML at its markers. Documents of comments alone are left out, unless these name a dependency.
func documents(text []byte) [][]byte {
	var all [][]byte
	var doc []byte
	end := func() {
		if dependencyOf(doc) != "" || hasContent(doc) {
			all = append(all, doc)
		}
		doc = nil
	}
	for line := range bytes.Lines(text) {
		if marker := bytes.TrimRight(line, " \t\r\n"); bytes.Equal(marker, []byte("---")) {
			end()
			continue
		}
		doc = append(doc, line...)
	}
	end()
	return all
}

func hasContent(doc []byte) bool {
	for line := range bytes.Lines(doc) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return true
		}
	}
	return false
}

// dependencyOf returns NAME of a first line "# dep=NAME", which a further comment can follow.
func dependencyOf(doc []byte) string {
	first, _, _ := bytes.Cut(bytes.TrimSpace(doc), []byte("\n"))
	comment, is := bytes.CutPrefix(first, []byte("#"))
	name, is2 := bytes.CutPrefix(bytes.TrimSpace(comment), []byte("dep="))
	if !is || !is2 {
		return ""
	}
	name, _, _ = bytes.Cut(name, []byte("#"))
	return string(bytes.TrimSpace(name))
}

// ownDependencyValues makes the package that was installed for a dependency the owner of
// its values, or else the package itself, once that is known. Before, they have none, so
// that nothing that uses them loses them.
func ownDependencyValues(ctx context.Context, cl *cluster.Cluster, t progress.Target, writers []*valuesWriter) error {
	if len(writers) == 0 {
		return nil
	}
	pkg, err := cl.Read(ctx, t)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	for _, w := range writers {
		owner := pkg
		for _, d := range pkg.PackageStatus().Dependencies {
			if d.Name != w.dependency || d.PackageRef == nil {
				continue
			}
			to := progress.Target{Scope: corev1alpha1.ScopeOf(d.PackageRef.Namespace), Namespace: d.PackageRef.Namespace, Name: d.PackageRef.Name}
			if found, err := cl.Read(ctx, to); err == nil && found.GetNamespace() == pkg.GetNamespace() && found.GetLabels()[corev1alpha1.GeneratedLabel] == "true" {
				owner = found
			}
		}
		if err := w.own(ctx, owner); err != nil {
			return err
		}
	}
	return nil
}

// dependencyWriters write the values of dependencies.
func (w *Package) dependencyWriters(cl *cluster.Cluster, t progress.Target) (writers []*valuesWriter) {
	for _, v := range w.DependencyValues {
		if at, err := v.target(t); err == nil {
			writers = append(writers, &valuesWriter{cluster: cl, target: at, values: v.values, dependency: v.name})
		}
	}
	return writers
}

func writeAll(ctx context.Context, writers []*valuesWriter) error {
	for _, w := range writers {
		if err := w.write(ctx); err != nil {
			return err
		}
	}
	return nil
}

// withdrawAll deletes the created objects.
func withdrawAll(ctx context.Context, writers []*valuesWriter) {
	for _, w := range writers {
		w.withdraw(ctx)
	}
}
