package desired

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/cli/content"
	"lockstep.run/lockstep/internal/loader/violation"
)

// DependencyFlags change the dependencies of a package.
type DependencyFlags struct{ overrides []string }

// Add adds the flags to a command.
func (f *DependencyFlags) Add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.overrides, "override", nil,
		`change a dependency: `+"`NAME=JSON`"+` with a package{name, version, prereleases} or configFrom, such as db={"package":{"version":"<2"}}; repeatable`)
	_ = cmd.RegisterFlagCompletionFunc("override", cobra.NoFileCompletions)
}

// Check returns an error of usage.
func (f *DependencyFlags) Check() error {
	_, err := f.wanted()
	return err
}

// wanted parses the overrides of all flags, in their order.
func (f *DependencyFlags) wanted() (overrides []corev1alpha1.DependencyOverride, err error) {
	for _, text := range f.overrides {
		o, err := parseOverride(text)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(overrides, func(other corev1alpha1.DependencyOverride) bool { return other.Name == o.Name }) {
			return nil, fmt.Errorf("--override %s is given twice: merge the two", o.Name)
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
	// An unknown field is probably a typing error, and would have no effect.
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

// withOverrides merges overrides into old by name. Only the fields that are set are merged.
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
		// A field that is not set keeps its old value.
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

// Into adds the overrides to a wanted package.
func (f *DependencyFlags) Into(w *Package) (err error) {
	w.Overrides, err = f.wanted()
	return err
}
