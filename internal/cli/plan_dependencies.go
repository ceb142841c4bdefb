package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/offers"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/dryrun"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/resolver"
	"lockstep.run/lockstep/internal/resolver/snapshot"
)

// resolution decides on dependencies as the manager would on what the cluster has now.
type resolution struct {
	input   resolver.Input
	offered *offeredCatalogue
	// hidden is what the user may not read.
	hidden []string
}

// resolution reads what is installed. The mapper is that of the cluster that the objects are in.
func (c *chooser) resolution(ctx context.Context, mapper meta.RESTMapper) (*resolution, error) {
	all, hidden, err := c.cluster.Packages(ctx)
	if err != nil {
		return nil, err
	}
	r := &resolution{offered: &offeredCatalogue{ctx: ctx, cluster: c.cluster, of: map[string]*chooser{}}, hidden: hidden}
	r.input = resolver.Input{
		Installed: installedOf(all), Catalogue: r.offered, Served: servedBy(mapper), Platform: ptr.Deref(c.look(ctx), versions.Platform{}),
	}
	if c.target != nil {
		r.input.Installed = nil // no package is depended on there
	}
	return r, nil
}

// solve resolves one package.
func (r *resolution) solve(root resolver.Root) (resolver.Plan, error) {
	input := r.input
	input.Roots = []resolver.Root{root}
	solution := resolver.Solve(input)
	return solution, r.offered.err
}

// chooseByNeeds takes the highest version that fits and whose dependencies can be satisfied, as the manager does, and says why where
// that is not the highest that fits.
func (r *resolution) chooseByNeeds(found *chosen, pkg corev1alpha1.GenericPackage, request versions.Request) (why string, err error) {
	spec, installed := pkg.PackageSpec(), pkg.PackageStatus().Resolved
	fitting := offers.Fitting(pkg, found.offered, found.Choice, request)
	root := resolver.Root{Instance: snapshot.InstanceOf(pkg), Package: found.name, Versions: rootVersions(fitting, spec.Dependencies)}
	solution, err := r.solve(root)
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
	root.Versions = root.Versions[:1]
	preferred, err := r.solve(root)
	if err != nil {
		return "", err
	}
	version := fitting[at].Version.Version
	found.Index = slices.IndexFunc(found.offered, func(o offers.Offered) bool { return o.Version.Version == version })
	return resolver.PassedOver(found.name, version, fitting[0].Version.Version, preferred.Results[0]), nil
}

func rootVersions(all []offers.Offered, overrides *corev1alpha1.PackageDependencies) []resolver.RootVersion {
	of := make([]resolver.RootVersion, len(all))
	for i := range all {
		v := &all[i].Version
		of[i] = resolver.RootVersion{Version: v.Version, Unique: v.UniqueInScope, Dependencies: snapshot.Overridden(v.Dependencies, overrides)}
	}
	return of
}

// resolve reads what is installed, once.
func (p *planned) resolve(ctx context.Context, cl *cluster.Cluster) (_ *resolution, err error) {
	if p.resolution == nil {
		p.resolution, err = p.chooser(cl).resolution(ctx, p.there.RESTMapper())
	}
	return p.resolution, err
}

func userManages(spec *corev1alpha1.PackageSpec) bool {
	return spec.Dependencies != nil && spec.Dependencies.Management == corev1alpha1.DependencyManagementUser
}

// depend adds to a plan what would be installed or changed for what the package depends on, as the manager would decide on
// what the cluster has now.
func (p *planned) depend(ctx context.Context, cl *cluster.Cluster, plan *dryrun.Plan) error {
	spec := p.pkg.PackageSpec()
	required := snapshot.Overridden(p.loaded.Dependencies, spec.Dependencies)
	if len(required) == 0 {
		return nil
	}
	resolution, err := p.resolve(ctx, cl)
	if err != nil {
		return err
	}
	for _, what := range resolution.hidden {
		plan.Warnings = append(plan.Warnings, "you may not read "+what+", so what is planned for dependencies may be wrong")
	}
	root := resolver.Root{
		Instance: snapshot.InstanceOf(p.pkg), Package: p.loaded.CatalogName, Version: p.loaded.Manifest.Spec.Version,
		Dependencies: required, Unique: p.loaded.UniqueInScope, UserManaged: userManages(spec),
	}
	if p.chosen != nil {
		root.Package, root.Version = p.ref, p.chosen.Version
	}
	solution, err := resolution.solve(root)
	if err != nil {
		return err
	}
	plan.Depend(dependenciesOf(solution), installationsOf(solution))
	return nil
}

func installedOf(all []corev1alpha1.GenericPackage) []resolver.Installed {
	installed := make([]resolver.Installed, len(all))
	for i, pkg := range all {
		installed[i] = snapshot.InstalledOf(pkg)
	}
	return installed
}

// servedBy asks whether a cluster serves an API. Its fields are left to the manager.
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

// offeredCatalogue reads what repositories offer, each namespace and package once.
type offeredCatalogue struct {
	ctx     context.Context //nolint:containedctx // of the one resolution that it is made for
	cluster *cluster.Cluster
	of      map[string]*chooser
	err     error
}

func (c *offeredCatalogue) in(namespace string) *chooser {
	if c.of[namespace] == nil {
		c.of[namespace] = chooserFor(c.cluster, namespace)
	}
	return c.of[namespace]
}

// Offers implements resolver.Catalogue.
func (c *offeredCatalogue) Offers(namespace, name string) []resolver.Offer {
	offered, _, err := c.in(namespace).Of(c.ctx, name)
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

func dependenciesOf(solution resolver.Plan) []dryrun.Dependency {
	var found []dryrun.Dependency
	for _, result := range solution.Results {
		for _, o := range result.Outcomes {
			d := dryrun.Dependency{
				Name: o.Dependency.Name, Optional: o.Dependency.Optional, Satisfied: o.Satisfied, Failed: o.Failed,
				Reason: o.Reason, Message: o.Message, Version: o.Version,
			}
			if o.Satisfier != nil {
				d.By = o.Satisfier.String()
			}
			found = append(found, d)
		}
	}
	return found
}

func installationsOf(solution resolver.Plan) []dryrun.Installation {
	var found []dryrun.Installation
	for _, step := range solution.Steps {
		i := dryrun.Installation{Object: step.Instance.String(), Package: step.Package, Version: step.Version, From: step.From, Because: []string{}}
		for _, n := range step.Needs {
			wants := "any version"
			if n.Dependency.Package != nil {
				wants = cmp.Or(n.Dependency.Package.Version, wants)
			} else if n.Dependency.API != nil {
				wants = n.Dependency.API.APIVersion + " " + n.Dependency.API.Kind
			}
			i.Because = append(i.Because, fmt.Sprintf("%s → %s (%s)", n.Dependent, n.Dependency.Name, wants))
		}
		found = append(found, i)
	}
	return found
}

// dependencies shows what is there, what is missing, and what would be installed or changed first.
func (t *planPrinter) dependencies(p *dryrun.Plan) {
	if len(p.Dependencies) == 0 {
		return
	}
	t.line(t.styles.Strong("Dependencies"))
	var rows [][]string
	for _, d := range p.Dependencies {
		mark := t.styles.Busy("·")
		switch {
		case d.Satisfied:
			mark = t.styles.Good("✓")
		case d.Failed:
			mark = t.styles.Bad("✗")
		}
		rows = append(rows, []string{"    " + mark + " " + terminal.Line(d.Name), terminal.Line(d.By), terminal.Line(d.Version), terminal.Line(cmp.Or(d.Message, d.Reason))})
	}
	for _, line := range terminal.Table(rows) {
		t.line(line)
	}
	for _, i := range p.Installations {
		what := t.styles.Good("+") + " " + terminal.Line(i.Object+"  "+i.Package+" "+i.Version)
		if i.From != "" {
			what = t.styles.Busy("~") + " " + terminal.Line(i.Object+"  "+i.Package+" "+i.From+" → "+i.Version)
		}
		t.line("    " + what)
		for _, because := range i.Because {
			t.line("        " + t.styles.Faint("needed by "+terminal.Line(because)))
		}
	}
	t.line("")
}
