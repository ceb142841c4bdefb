package desired

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/offers"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/content"
	"lockstep.run/lockstep/internal/loader/violation"
	"lockstep.run/lockstep/internal/resolver"
	"lockstep.run/lockstep/internal/resolver/snapshot"
)

// Resolution resolves dependencies as the manager would, given the current content of the cluster.
type Resolution struct {
	Input   resolver.Input
	offered *offeredCatalogue
	// Hidden names everything that the user may not read.
	Hidden []string
	// wasAvailable is about the generated packages.
	wasAvailable func(resolver.Instance) bool
}

// Resolution reads the installed packages. The mapper belongs to the cluster that holds the
// objects.
func (c *Chooser) Resolution(ctx context.Context, mapper meta.RESTMapper) (*Resolution, error) {
	all, hidden, err := c.Cluster.Packages(ctx)
	if err != nil {
		return nil, err
	}
	r := &Resolution{offered: &offeredCatalogue{ctx: ctx, cluster: c.Cluster, of: map[string]*Chooser{}}, Hidden: hidden}
	r.Input = resolver.Input{
		Catalogue: r.offered, Served: servedBy(mapper), Platform: ptr.Deref(c.look(ctx), versions.Platform{}),
	}

	known := map[resolver.Instance]bool{}
	// A solution asks several times for the same packages, and each answer costs a request.
	r.wasAvailable = func(i resolver.Instance) bool {
		if _, ok := known[i]; !ok {
			known[i] = c.wasAvailable(ctx, i)
		}
		return known[i]
	}

	for _, pkg := range all {
		if c.target == nil { // no package depends on the ones in another cluster
			r.Input.Installed = append(r.Input.Installed, snapshot.InstalledOf(pkg))
		}
	}
	return r, nil
}

// Solve resolves one package.
func (r *Resolution) Solve(root resolver.Root) (resolver.Plan, error) {
	input := r.Input
	input.Roots, input.Installed = []resolver.Root{root}, snapshot.InstalledFor(root, input.Installed, r.wasAvailable)
	solution := resolver.Solve(input)
	return solution, r.offered.err
}

// ChooseByNeeds takes the highest version that fits and whose dependencies can be satisfied, as the
// manager does. If this is not the highest version that fits, why explains it.
func (r *Resolution) ChooseByNeeds(found *Chosen, pkg corev1alpha1.GenericPackage, request versions.Request) (why string, err error) {
	spec, installed := pkg.PackageSpec(), pkg.PackageStatus().Resolved
	fitting := offers.Fitting(pkg, found.Offered, found.Choice, request)
	root := resolver.Root{Instance: snapshot.InstanceOf(pkg), Package: found.Name, Versions: snapshot.RootVersions(fitting, spec.Dependencies)}
	solution, err := r.Solve(root)
	if err != nil {
		return "", err
	}

	own := solution.Results[0]
	at := slices.IndexFunc(fitting, func(o offers.Offered) bool {
		return o.Version.Version == own.Version && !own.Failed() || own.Failed() && installed != nil && o.Version.Version == installed.Version
	})
	if at <= 0 {
		return "", nil
	}
	// Another solution with only the highest version explains why it was passed over.
	root.Versions = root.Versions[:1]
	preferred, err := r.Solve(root)
	if err != nil {
		return "", err
	}
	version := fitting[at].Version.Version
	found.Index = slices.IndexFunc(found.Offered, func(o offers.Offered) bool { return o.Version.Version == version })

	return found.Name + ": " + resolver.PassedOver(version, fitting[0].Version.Version, preferred.Results[0]), nil
}

// UserManages reports whether the dependencies of a package are left to the user.
func UserManages(spec *corev1alpha1.PackageSpec) bool {
	return spec.Dependencies != nil && spec.Dependencies.Management == corev1alpha1.DependencyManagementUser
}

// servedBy asks whether a cluster serves an API. The manager checks its fields.
func servedBy(mapper meta.RESTMapper) resolver.Served {
	return func(api *corev1alpha1.DependencyAPI) (served bool, missing []string) {
		gv, err := schema.ParseGroupVersion(api.APIVersion)
		if err != nil {
			return false, nil
		}
		_, err = mapper.RESTMapping(schema.GroupKind{Group: gv.Group, Kind: api.Kind}, gv.Version)
		return err == nil, nil
	}
}

// offeredCatalogue reads the offers of repositories. It reads each namespace and package once.
type offeredCatalogue struct {
	// ctx is a field, because the interface of the resolver has no context.
	ctx     context.Context // of the one resolution it serves
	cluster *cluster.Cluster
	of      map[string]*Chooser
	err     error
}

// in returns the chooser for the offers of a namespace.
func (c *offeredCatalogue) in(namespace string) *Chooser {
	if c.of[namespace] == nil {
		c.of[namespace] = ChooserFor(c.cluster, namespace)
	}
	return c.of[namespace]
}

// Offers implements resolver.Catalogue.
func (c *offeredCatalogue) Offers(namespace, name string) []resolver.Offer {
	offered, _, err := c.in(namespace).Of(c.ctx, name)
	// The resolver's interface returns no errors, so the first one is kept for Solve.
	c.err = cmp.Or(c.err, err)
	return snapshot.OffersOf(offered)
}

// Providers implements resolver.Catalogue.
func (c *offeredCatalogue) Providers(namespace string, api corev1alpha1.ProvidedAPI) []string {
	names, err := c.in(namespace).All(c.ctx)
	if c.err = cmp.Or(c.err, err); err != nil {
		return nil
	}
	return slices.DeleteFunc(names, func(name string) bool {
		return !slices.ContainsFunc(c.Offers(namespace, name), func(o resolver.Offer) bool { return slices.Contains(o.Provides, api) })
	})
}

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
