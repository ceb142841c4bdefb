package desired

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/offers"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/cli/cluster"
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
