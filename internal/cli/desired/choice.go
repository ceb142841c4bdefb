package desired

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/offers"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/cli/content"
)

// ChoiceFlags choose a version of what repositories offer.
type ChoiceFlags struct {
	version     string
	prereleases PrereleaseFlag
	changed     func(string) bool
}

// Add adds the flags to a command.
func (f *ChoiceFlags) Add(cmd *cobra.Command) {
	f.changed = cmd.Flags().Changed
	cmd.Flags().StringVar(&f.version, "version", "", "`constraint` on the version, such as 1.2.3 or '>=1.2, <2'; the highest that fits is installed and followed")
	f.prereleases.Add(cmd, "let versions with a prerelease take part")
}

// Given reports whether the flags are set.
func (f *ChoiceFlags) Given() bool {
	return f.changed("version") || f.version != "" || f.prereleases.Given()
}

// Check returns an error of usage.
func (f *ChoiceFlags) Check() error {
	if _, err := versions.ParseConstraint(f.version); err != nil {
		return fmt.Errorf("--version: %w", err)
	}
	return nil
}

// Reference is a packageRef to a package.
func (f *ChoiceFlags) Reference(name string) *corev1alpha1.PackageReference {
	return &corev1alpha1.PackageReference{
		Name: name, VersionSelection: corev1alpha1.VersionSelection{Version: f.version, Prereleases: f.prereleases.Value()},
	}
}

// Over is a reference with what the flags change.
func (f *ChoiceFlags) Over(old *corev1alpha1.PackageReference) *corev1alpha1.PackageReference {
	ref := old.DeepCopy()
	if f.changed("version") {
		ref.Version = f.version
	}
	if f.prereleases.Given() {
		ref.Prereleases = f.prereleases.Value()
	}
	return ref
}

// ValuesFlags are the values of a package.
type ValuesFlags struct {
	File      string
	sensitive bool
	// Dependencies are values of dependencies in the same file, after read.
	Dependencies []dependencyValues
}

// Add adds the flags to a command.
func (f *ValuesFlags) Add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.File, "values", "f", "", "YAML or JSON `file` with the package's values, and in further documents that begin with # dep=NAME those of dependencies; - for standard input")
	cmd.Flags().BoolVar(&f.sensitive, "sensitive", false, "keep the values in a Secret; they may be rendered into Secrets only")
}

// Check returns an error of usage.
func (f *ValuesFlags) Check() error {
	if f.sensitive && f.File == "" {
		return errors.New("--sensitive is about --values, which are not given")
	}
	return nil
}

// Read returns nil where there are none.
func (f *ValuesFlags) Read(stdin io.Reader) (*Values, error) {
	if f.File == "" {
		return nil, nil
	}
	name, text, err := content.ReadInput(f.File, stdin)
	if err != nil {
		return nil, fmt.Errorf("read the values: %w", err)
	}
	return f.split(name, text)
}

// RequestFor is what the manager would choose for a package.
func RequestFor(old corev1alpha1.GenericPackage, want *Package) versions.Request {
	pkg := corev1alpha1.GenericPackage(&corev1alpha1.Package{})
	if old != nil {
		pkg = old.DeepCopyObject().(corev1alpha1.GenericPackage)
	}
	spec := pkg.PackageSpec()
	spec.PackageRef = want.Ref
	return offers.RequestOf(pkg, versions.Platform{})
}

// PrereleaseFlag is --prereleases, with or without identifiers.
type PrereleaseFlag struct {
	identifiers []string
	changed     func(string) bool
}

const anyPrerelease = "*"

// Add adds the flags to a command.
func (p *PrereleaseFlag) Add(cmd *cobra.Command, usage string) {
	p.changed = cmd.Flags().Changed
	cmd.Flags().StringSliceVar(&p.identifiers, "prereleases", nil, usage+"; --prereleases=rc,beta those with these `identifiers` alone")
	cmd.Flags().Lookup("prereleases").NoOptDefVal = anyPrerelease
}

// Given reports whether the flags are set.
func (p *PrereleaseFlag) Given() bool { return p.changed("prereleases") }

// Value is nil for --prereleases=none, too.
func (p *PrereleaseFlag) Value() *corev1alpha1.Prereleases {
	switch {
	case !p.Given(), slices.Equal(p.identifiers, []string{"none"}):
		return nil
	case slices.Contains(p.identifiers, anyPrerelease):
		return &corev1alpha1.Prereleases{}
	}
	return &corev1alpha1.Prereleases{Identifiers: p.identifiers}
}
