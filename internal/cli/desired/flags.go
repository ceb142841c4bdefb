package desired

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/cli/content"
	"lockstep.run/lockstep/internal/cli/progress"
)

// SelectionFlags select versions by a constraint, and prereleases.
type SelectionFlags struct {
	flag        string // of the constraint
	version     string
	prereleases PrereleaseFlag
	changed     func(string) bool
}

// Add adds the flags to a command. The constraint is of the flag of that name.
func (f *SelectionFlags) Add(cmd *cobra.Command, flag, usage, prereleases string) {
	f.flag, f.changed = flag, cmd.Flags().Changed
	cmd.Flags().StringVar(&f.version, flag, "", usage)
	f.prereleases.Add(cmd, prereleases)
}

// Given reports whether the flags are set.
func (f *SelectionFlags) Given() bool {
	return f.changed(f.flag) || f.version != "" || f.prereleases.Given()
}

// Check returns an error of usage.
func (f *SelectionFlags) Check() error {
	if _, err := versions.ParseConstraint(f.version); err != nil {
		return fmt.Errorf("--%s: %w", f.flag, err)
	}
	return nil
}

// Change changes the parts of a selection that the flags name.
func (f *SelectionFlags) Change(s *corev1alpha1.VersionSelection) {
	if f.changed(f.flag) || f.version != "" {
		s.Version = f.version
	}
	if f.prereleases.Given() {
		s.Prereleases = f.prereleases.Value()
	}
}

// ChoiceFlags choose one of the versions that repositories offer.
type ChoiceFlags struct{ SelectionFlags }

// Add adds the flags to a command.
func (f *ChoiceFlags) Add(cmd *cobra.Command) {
	f.SelectionFlags.Add(cmd, "version", "install and follow the highest version that fits this `constraint`, such as 1.2.3 or '>=1.2, <2'",
		"include versions with a prerelease")
}

// Reference returns a packageRef to a package.
func (f *ChoiceFlags) Reference(name string) *corev1alpha1.PackageReference {
	return f.Over(&corev1alpha1.PackageReference{Name: name})
}

// Over returns a reference changed by the flags.
func (f *ChoiceFlags) Over(old *corev1alpha1.PackageReference) *corev1alpha1.PackageReference {
	ref := old.DeepCopy()
	f.Change(&ref.VersionSelection)
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

// SpecFlags set fields of a package.
type SpecFlags struct {
	Cluster   bool
	Component string
	Config    string
	Adopt     bool
	Given     func(flag string) bool
}

// Add adds the flags. Their usage starts with verb.
func (f *SpecFlags) Add(cmd *cobra.Command, verb string) {
	f.Given = cmd.Flags().Changed
	cmd.Flags().BoolVar(&f.Cluster, "cluster", false, verb+" a ClusterPackage")
	cmd.Flags().StringVar(&f.Component, "component", "", "install this component of a package with several")
	cmd.Flags().StringVar(&f.Config, "config", "", "read the package's configuration from this YAML or JSON `file`, - for standard input")
	cmd.Flags().BoolVar(&f.Adopt, "adopt", false, "take over existing objects without a controller (spec.collisionProtection: IfNoController)")
}

// TargetFlags name another cluster to install in.
type TargetFlags struct{ secret, namespace string }

// Add adds the flags to a command.
func (f *TargetFlags) Add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.secret, "target-kubeconfig-secret", "",
		"install in the cluster of the kubeconfig in this Secret, `NAME[/KEY]`, which is in the package's namespace, or in the manager's for a ClusterPackage; the default key is value")
	cmd.Flags().StringVar(&f.namespace, "target-namespace", "", "install in this `namespace` of that cluster (default: the namespace of the same name)")
}

// Reference returns spec.targetRef; nil if no flag is given.
func (f *TargetFlags) Reference(account string) (*corev1alpha1.TargetReference, error) {
	switch {
	case f.secret == "" && f.namespace == "":
		return nil, nil
	case f.secret == "":
		return nil, errors.New("--target-namespace is in another cluster: name that with --target-kubeconfig-secret")
	case account != "":
		return nil, errors.New("--service-account and --target-kubeconfig-secret contradict each other: objects in another cluster are written by the user of the kubeconfig")
	}

	name, key, _ := strings.Cut(f.secret, "/")
	return &corev1alpha1.TargetReference{
		KubeconfigSecretRef: corev1alpha1.KubeconfigSecretReference{Name: name, Key: key}, Namespace: f.namespace,
	}, nil
}

// KeepsTarget refuses to change the target of a package.
func KeepsTarget(t progress.Target, old *corev1alpha1.PackageSpec, want *corev1alpha1.TargetReference) error {
	if want == nil || equality.Semantic.DeepEqual(old.TargetRef, want) {
		return nil
	}
	return fmt.Errorf("%s is installed in another cluster than the one that --target-kubeconfig-secret and --target-namespace name, and this cannot be changed: delete it first, or choose another NAME", t)
}

// PullSecretFlags name the Secrets with credentials for the registry of a package.
type PullSecretFlags struct {
	names   []string
	changed func(string) bool
}

// Add adds the flag to a command.
func (f *PullSecretFlags) Add(cmd *cobra.Command) {
	f.changed = cmd.Flags().Changed
	cmd.Flags().StringArrayVar(&f.names, "pull-secret", nil,
		"use the Secret with this `name` for the registry of the package; it is in the package's namespace, or in the manager's for a ClusterPackage; repeatable, \"\" removes all")
}

// Into sets the Secrets of the flags. Without flags, the Secrets of the package stay. An empty name
// removes all of them.
func (f *PullSecretFlags) Into(w *Package) {
	if w.changesPullSecrets = f.changed("pull-secret"); !w.changesPullSecrets {
		return
	}
	for _, name := range f.names {
		if ref := (corev1alpha1.LocalSecretReference{Name: name}); name != "" && !slices.Contains(w.pullSecrets, ref) {
			w.pullSecrets = append(w.pullSecrets, ref)
		}
	}
}

// IsImage reports whether an argument is an image rather than the name of a package in a catalogue.
func IsImage(arg string) bool { return strings.ContainsAny(arg, "/:@") }

// OfferedArgument divides NAME/VERSION. A complete version after the only slash belongs to an
// offered package, because an image of such a path needs a tag.
func OfferedArgument(arg string) (pkg, version string) {
	pkg, version, slash := strings.Cut(arg, "/")
	// The prefix v is the habit of tags. Offered versions do not have it.
	version = strings.TrimPrefix(version, "v")
	if _, err := versions.Parse(version); !slash || err != nil || len(validation.IsDNS1123Subdomain(pkg)) > 0 {
		return arg, ""
	}
	return pkg, version
}

// PackageOrImage reads an argument PACKAGE[/VERSION]|IMAGE. The version replaces --version. An image
// names its registry. Without a registry, the text might mean a package with its repository or
// version.
func (f *ChoiceFlags) PackageOrImage(arg string) (pkg string, image name.Reference, err error) {
	pkg, version := OfferedArgument(arg)
	if version != "" {
		if f.changed("version") && f.version != version {
			return "", nil, fmt.Errorf("%s and --version %s contradict each other", arg, f.version)
		}
		f.version = version
	}

	host, _, slash := strings.Cut(pkg, "/")
	switch {
	// A name that fits both is a package, because an image needs a registry.
	case !IsImage(pkg):
		if problems := validation.IsDNS1123Subdomain(pkg); len(problems) > 0 {
			return "", nil, fmt.Errorf("PACKAGE %q is neither an image nor the name of a package: %s", pkg, problems[0])
		}
		return pkg, nil, nil
	case !slash || host != "localhost" && !strings.ContainsAny(host, ".:"):
		return "", nil, fmt.Errorf("%q names no registry: write an image in full, such as docker.io/library/web:v1, or an offered package by its name, with --version", arg)
	case f.Given():
		return "", nil, fmt.Errorf("--version and --prereleases choose from the offers of repositories, but %s is an image", arg)
	}

	image, err = content.ImageReference("IMAGE", arg)
	return "", image, err
}
