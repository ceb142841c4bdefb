package desired

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/content"
	"lockstep.run/lockstep/internal/loader/manifest"
)

// ChoiceFlags choose one of the versions that repositories offer.
type ChoiceFlags struct {
	version     string
	api         string
	prereleases PrereleaseFlag
	changed     func(string) bool
}

// Add adds the flags to a command.
func (f *ChoiceFlags) Add(cmd *cobra.Command) {
	f.changed = cmd.Flags().Changed
	cmd.Flags().StringVar(&f.version, "version", "", "install and follow the highest version that fits this `constraint`, such as 1.2.3 or '>=1.2, <2'")
	f.prereleases.Add(cmd, "include versions with a prerelease")
}

// AddAPI adds --api to a command whose first argument is a package.
func (f *ChoiceFlags) AddAPI(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.api, "api", "", "choose the package by the API that it provides, `APIVERSION/KIND`, such as example.com/v1/Shop, instead of by name; the only argument is then NAME")
}

// Takes is command.Takes, except that --api can replace the first argument.
func (f *ChoiceFlags) Takes(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if f.changed("api") {
			return command.Takes(append([]string{"NAME"}, names[1:]...)...)(cmd, args)
		}
		return command.Takes(names...)(cmd, args)
	}
}

// ByAPI returns a packageRef to the package that provides the API of --api; nil without the flag.
func (f *ChoiceFlags) ByAPI(args []string) (*corev1alpha1.PackageReference, error) {
	if f.changed == nil || !f.changed("api") {
		return nil, nil
	}
	// Only the last slash divides the two, because an API version can have one itself.
	at := strings.LastIndex(f.api, "/")
	api := corev1alpha1.ProvidedAPI{APIVersion: f.api[:max(at, 0)], Kind: f.api[at+1:]}
	// Kinds start with a capital letter, so an argument in lower case is a resource.
	if !manifest.IsAPI(api) || api.Kind == strings.ToLower(api.Kind) {
		return nil, fmt.Errorf("--api %q is not a valid APIVERSION/KIND, such as example.com/v1/Shop", f.api)
	}

	if len(args) != 1 {
		return nil, fmt.Errorf("--api replaces the package: the only argument is NAME, and %q is one too many", args[len(args)-1])
	}
	ref := f.Reference("")
	ref.API = (*corev1alpha1.APIReference)(&api)
	return ref, nil
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

// Reference returns a packageRef to a package.
func (f *ChoiceFlags) Reference(name string) *corev1alpha1.PackageReference {
	return &corev1alpha1.PackageReference{
		Name: name, VersionSelection: corev1alpha1.VersionSelection{Version: f.version, Prereleases: f.prereleases.Value()},
	}
}

// Over returns a reference changed by the flags.
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
}

// Add adds the flags to a command.
func (f *ValuesFlags) Add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.File, "values", "f", "", "read the package's values from this YAML or JSON `file`, - for standard input")
	cmd.Flags().BoolVar(&f.sensitive, "sensitive", false, "keep the values in a Secret; they can only be rendered into Secrets")
}

// Check returns an error of usage.
func (f *ValuesFlags) Check() error {
	if f.sensitive && f.File == "" {
		return errors.New("--sensitive needs --values")
	}
	return nil
}

// Read returns the values of the file, or nil without one. They are parsed here, so that no error
// can occur after the first write.
func (f *ValuesFlags) Read(stdin io.Reader) (*Values, error) {
	if f.File == "" {
		return nil, nil
	}
	name, text, err := content.ReadInput(f.File, stdin)
	if err != nil {
		return nil, fmt.Errorf("read the values: %w", err)
	}
	raw, err := content.ParseConfig(name, text)
	if err != nil {
		return nil, err
	}

	return &Values{Text: text, raw: raw, Sensitive: f.sensitive}, nil
}

// SamePackage reports whether two references are to one package, by name or by API, in any
// versions.
func SamePackage(a, b *corev1alpha1.PackageReference) bool {
	return a != nil && b != nil && a.Name == b.Name && equality.Semantic.DeepEqual(a.API, b.API)
}

// following returns a package with another reference. For nil it returns a new package.
func following(old corev1alpha1.GenericPackage, ref *corev1alpha1.PackageReference) corev1alpha1.GenericPackage {
	pkg := corev1alpha1.GenericPackage(&corev1alpha1.Package{})
	if old != nil {
		pkg = old.DeepCopyObject().(corev1alpha1.GenericPackage)
	}
	pkg.PackageSpec().PackageRef = ref
	return pkg
}

// PrereleaseFlag is --prereleases, with or without identifiers.
type PrereleaseFlag struct {
	identifiers []string
	changed     func(string) bool
}

// anyPrerelease is the value of --prereleases without identifiers. It is not valid as an
// identifier.
const anyPrerelease = "*"

// Add adds the flags to a command.
func (p *PrereleaseFlag) Add(cmd *cobra.Command, usage string) {
	p.changed = cmd.Flags().Changed
	cmd.Flags().StringSliceVar(&p.identifiers, "prereleases", nil, usage+"; --prereleases=rc,beta only the ones with these `identifiers`")

	cmd.Flags().Lookup("prereleases").NoOptDefVal = anyPrerelease
}

// Given reports whether the flags are set.
func (p *PrereleaseFlag) Given() bool { return p.changed("prereleases") }

// Value returns the prereleases of a selection. It is nil for --prereleases=none, as without the
// flag.
func (p *PrereleaseFlag) Value() *corev1alpha1.Prereleases {
	switch {
	case !p.Given(), slices.Equal(p.identifiers, []string{"none"}):
		return nil
	case slices.Contains(p.identifiers, anyPrerelease):
		return &corev1alpha1.Prereleases{}
	}
	return &corev1alpha1.Prereleases{Identifiers: p.identifiers}
}
