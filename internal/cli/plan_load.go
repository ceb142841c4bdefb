package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/offers"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/dryrun"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/inputs/targets"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/manifest"
)

type planned struct {
	target progress.Target
	// pkg is the Package as it would be, before what it is; nil where there is none.
	pkg, before corev1alpha1.GenericPackage
	digest      string
	// folder that the package is in; empty for an image.
	folder string
	// chosen is the version that packageRef leads to, of the package ref; nil without packageRef.
	chosen   *corev1alpha1.AvailableVersion
	ref      string
	loaded   *loader.Package
	warnings []string
	// values stand in the place of the object in which install would keep them; nil for none.
	values *packageValues
	// client reads kinds of all sorts where the package is, there where its objects are, which is
	// remote where that is another cluster.
	client, there client.Client
	remote        *cluster.Remote
	// resolution is nil before what is installed was read.
	resolution *resolution
}

func (p *planned) request() dryrun.Request {
	r := dryrun.Request{
		Scope: p.target.Scope, Namespace: p.target.Namespace, Name: p.target.Name,
		Template: p.loaded.Template(), Labels: p.loaded.Labels, ManagerNamespace: corev1alpha1.DefaultNamespace,
	}
	r.Template.TargetRef = p.pkg.PackageSpec().TargetRef
	r.Template.ServiceAccountName = p.pkg.PackageSpec().ServiceAccountName
	r.KeepAccount = r.Template.ServiceAccountName == "" && p.before != nil && p.before.PackageSpec().ServiceAccountName == ""
	r.ReportDrift = p.pkg.PackageSpec().DriftPolicy == corev1alpha1.DriftPolicyReport
	if p.loaded.Sensitive != nil {
		r.Sensitive = p.loaded.HoldsSensitive
	}
	return r
}

func (p *planned) complete(plan *dryrun.Plan) {
	plan.To = dryrun.Release{Folder: p.folder, Digest: p.digest, Package: p.loaded.Name, Version: p.loaded.Manifest.Spec.Version}
	if p.folder == "" {
		plan.To.Image = p.image()
	}
	if p.chosen != nil {
		plan.To.Version = p.chosen.Version
	}
	plan.Warnings = append(plan.Warnings, p.warnings...)
	for _, w := range p.loaded.Warnings {
		plan.Warnings = append(plan.Warnings, w.String())
	}
	if p.before == nil {
		return
	}
	plan.From = &dryrun.Release{Image: installedImage(p.before), Revision: p.before.PackageStatus().Revision}
	if r := p.before.PackageStatus().Resolved; r != nil {
		plan.From.Digest, plan.From.Package, plan.From.Version = r.Digest, r.PackageName, r.Version
	}
	if p.before.PackageSpec().Paused {
		plan.Warnings = append(plan.Warnings, "the package is paused: nothing of this happens before spec.paused is false")
	}
	if p.before.GetDeletionTimestamp() != nil {
		plan.Warnings = append(plan.Warnings, "the package is being deleted")
	}
}

// load finds the package and renders it as the manager would.
func (c *planCommand) load(ctx context.Context, cl *cluster.Cluster, want plannedPackage) (*planned, error) {
	p := &planned{}
	var files loader.Files
	var err error
	if want.folder {
		p.folder = want.source
		if files, err = readSource(want.source); err != nil {
			return p, err
		}
	}
	if want.name.Name == "" {
		if want.name.Name, err = nameOf(want, files); err != nil {
			return p, err
		}
	}
	if err := c.find(ctx, cl, want, p); err != nil {
		return p, err
	}
	if err := c.change(want, p); err != nil {
		return p, err
	}
	if err := p.connect(ctx, cl, p.target.Namespace, p.pkg.PackageSpec().TargetRef); err != nil {
		return p, err
	}
	if !want.folder {
		if err := chooseVersion(ctx, cl, p); err != nil {
			return p, err
		}
		if files, err = c.content(ctx, p); err != nil {
			return p, err
		}
	}
	if err := checkScope(cmp.Or(p.folder, p.pkg.PackageSpec().Image, p.ref), files, p.pkg.PackageSpec().Component, p.target.Scope); err != nil && p.before == nil {
		return p, err
	}
	opts, err := p.loaderOptions(ctx, cl)
	if err != nil {
		return p, err
	}
	if p.chosen != nil {
		opts.Package.Image = p.chosen.Image
	}
	if p.loaded, err = loader.Load(ctx, files, opts); err != nil {
		return p, err
	}
	return p, loader.CheckTarget(p.pkg.PackageSpec().TargetRef, p.loaded.Dependencies)
}

func nameOf(want plannedPackage, files loader.Files) (string, error) {
	if want.ref != nil {
		return want.ref.Name, nil
	}
	if !want.folder {
		ref, err := name.ParseReference(want.source)
		if err != nil {
			return "", err
		}
		return baseName(ref), nil
	}
	result, problems := manifest.Read(files, "")
	if result == nil {
		return "", problems.Err()
	}
	return result.Manifest.Name, nil
}

func (c *planCommand) find(ctx context.Context, cl *cluster.Cluster, want plannedPackage, p *planned) error {
	if want.source == "" && want.ref == nil {
		var err error
		p.target, p.before, err = cl.Find(ctx, want.name)
		return err
	}
	p.target = cl.Target(cmp.Or(want.name.Scope, corev1alpha1.ScopeNamespaced), want.name.Name)
	target, pkg, err := cl.Find(ctx, want.name)
	switch {
	case err == nil:
		p.target, p.before = target, pkg
		if want.name.Scope != target.Scope && target.Scope == corev1alpha1.ScopeCluster {
			p.warnings = append(p.warnings, fmt.Sprintf(
				"%s was meant, because there is no package of that name in namespace %s; install it as %s", target, cl.Namespace, target.Arg()))
		}
		return nil
	case errors.As(err, new(cluster.NotFoundError)):
		return nil
	case want.name.Scope == "" && apierrors.IsForbidden(err):
		// A user who may read Packages only means one of them.
		if _, err := cl.Read(ctx, p.target); apierrors.IsNotFound(err) && !cluster.Unserved(err) {
			return nil
		}
	}
	return err
}

// change makes the Package what it would be.
func (c *planCommand) change(want plannedPackage, p *planned) error {
	if p.before != nil {
		if err := keepsTarget(p.target, p.before.PackageSpec(), want.target); err != nil {
			return err
		}
		p.pkg = p.before.DeepCopyObject().(corev1alpha1.GenericPackage)
	} else {
		p.pkg = p.target.Scope.NewPackage()
		p.pkg.SetNamespace(p.target.Namespace)
		p.pkg.SetName(p.target.Name)
		p.pkg.PackageSpec().TargetRef = want.target
	}
	spec := p.pkg.PackageSpec()
	switch {
	case want.ref != nil:
		if old := spec.PackageRef; old == nil || old.Name != want.ref.Name || c.choice.given() {
			spec.Image, spec.PackageRef = "", want.ref // else what no flag names stays, as with install
		}
	case want.source != "" && !want.folder:
		spec.Image, spec.PackageRef = want.source, nil
	case want.moves && spec.PackageRef == nil:
		return fmt.Errorf("%s is installed from the image %s, and follows no repository: --version and --prereleases choose nothing", p.target, spec.Image)
	case want.moves:
		spec.PackageRef = c.choice.over(spec.PackageRef)
	}
	if c.spec.given("component") {
		spec.Component = c.spec.component
	}
	if c.spec.adopt {
		adopt(spec)
	}
	if want.edit != nil {
		if err := want.edit(p.target, spec); err != nil {
			return err
		}
	}
	values, err := c.values.read(c.streams.In)
	if err != nil {
		return err
	}
	if p.values = values; values != nil {
		spec.ConfigFrom = withValues(spec.ConfigFrom, values.source(p.target))
	}
	raw, err := readConfig(c.spec.config, c.streams.In)
	if err != nil {
		return err
	}
	if raw != nil {
		spec.Config = &runtime.RawExtension{Raw: raw}
	}
	return nil
}

// chooseVersion chooses the version that packageRef leads to, where there is one.
func chooseVersion(ctx context.Context, cl *cluster.Cluster, p *planned) error {
	ref := p.pkg.PackageSpec().PackageRef
	if ref == nil {
		return nil
	}
	request := requestFor(p.before, &wantedPackage{ref: ref})
	found, err := p.chooser(cl).mustChoose(ctx, ref.Name, request)
	if err != nil {
		return err
	}
	if resolved := p.pkg.PackageStatus().Resolved; len(found.version().Version.Dependencies) > 0 && p.remote == nil && !userManages(p.pkg.PackageSpec()) &&
		(resolved == nil || resolved.Version != found.version().Version.Version) {
		resolution, err := p.resolve(ctx, cl)
		if err != nil {
			return err
		}
		why, err := resolution.chooseByNeeds(found, p.pkg, request)
		if err != nil {
			return err
		}
		if why != "" {
			p.warnings = append(p.warnings, why)
		}
	}
	p.chosen, p.ref = &found.version().Version, ref.Name
	return nil
}

// image is the one to load; empty for manifests that a repository has itself.
func (p *planned) image() string {
	if p.chosen != nil {
		return p.chosen.Image
	}
	return p.pkg.PackageSpec().Image
}

// content reads the package, and makes one of plain manifests that a repository offers.
func (c *planCommand) content(ctx context.Context, p *planned) (files loader.Files, err error) {
	if p.chosen != nil && p.chosen.Image == "" {
		files = loader.Files{}
		for path, text := range p.chosen.Files {
			files[path] = []byte(text)
		}
		p.digest = offers.FilesDigest(p.chosen.Files)
	} else if files, err = c.pull(ctx, p); err != nil {
		return nil, err
	}
	if p.chosen != nil && !loader.HasManifest(files) {
		return loader.Plain(p.ref, files, loader.Declared{Dependencies: p.chosen.Dependencies, UniqueInScope: p.chosen.UniqueInScope})
	}
	return files, nil
}

func installedImage(pkg corev1alpha1.GenericPackage) string {
	if r := pkg.PackageStatus().Resolved; pkg.PackageSpec().PackageRef != nil && r != nil {
		return r.Image
	}
	return pkg.PackageSpec().Image
}

// pull reads the package from its image, with the pull secrets of the Package if the user
// may read them, and else with the user's credentials.
func (c *planCommand) pull(ctx context.Context, p *planned) (loader.Files, error) {
	keys, missing, err := sources.Keychain(ctx, sources.Getter(p.client), sources.PullSecrets(p.pkg.PackageSpec(), p.home()))
	if err != nil {
		return nil, err
	}
	ref := sources.Reference(p.pkg, p.image(), p.changed())
	image, err := c.source.registry.pullFrom(ctx, "", ref, keys)
	if err == nil && p.chosen != nil && len(image.Files) == 0 {
		image, err = c.source.registry.pullManifests(ctx, sources.ByDigest(ref, image.Digest), keys)
	}
	if err != nil && len(missing) > 0 {
		err = fmt.Errorf("%w. Of spec.imagePullSecrets, %s", err, strings.Join(missing, "; "))
	}
	if err != nil {
		return nil, err
	}
	for _, problem := range missing {
		p.warnings = append(p.warnings, "spec.imagePullSecrets: "+problem)
	}
	p.digest = image.Digest
	return image.Files, nil
}

// home is the namespace of what the spec names.
func (p *planned) home() string { return cmp.Or(p.pkg.GetNamespace(), corev1alpha1.DefaultNamespace) }

// changed reports whether the manager has not unpacked the spec as it would be.
func (p *planned) changed() bool {
	if p.before == nil || !conditions.IsTrueFor(*p.before.StatusConditions(), corev1alpha1.ConditionUnpacked, p.before.GetGeneration()) {
		return true
	}
	old, spec := p.before.PackageSpec(), p.pkg.PackageSpec()
	return old.Image != spec.Image || old.Component != spec.Component || !sameConfig(old.Config, spec.Config)
}

func sameConfig(a, b *runtime.RawExtension) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return sameJSON(a.Raw, b.Raw)
}

// loaderOptions are those of the manager for a package.
func (p *planned) loaderOptions(ctx context.Context, cl *cluster.Cluster) (loader.Options, error) {
	pkg, spec := p.pkg, p.pkg.PackageSpec()
	env, err := p.environment(ctx, cl)
	if err != nil {
		return loader.Options{}, err
	}
	values, err := sources.Read(ctx, p.sources(), spec, p.home())
	if err != nil {
		return loader.Options{}, err
	}
	opts := sources.Options(pkg, values)
	opts.Environment, opts.Package.Image, opts.ResolvesDependencies = env, cmp.Or(spec.Image, loader.StaticImage), true
	opts.Namespaced = func(gk schema.GroupKind) (namespaced, known bool) {
		m, err := p.there.RESTMapper().RESTMapping(gk)
		return err == nil && m.Scope.Name() == meta.RESTScopeNameNamespace, err == nil
	}
	opts.Others, err = others(ctx, cl, pkg)
	return opts, err
}

// sources reads what the spec names, and the values of the plan where install would write them.
func (p *planned) sources() sources.Get {
	get := sources.Getter(p.client)
	if p.values == nil {
		return get
	}
	source := p.values.source(p.target)
	own := sources.Ref{Kind: sourceKind(*source), Namespace: valuesNamespace(p.target), Name: p.target.Name + valuesSuffix}
	return func(ctx context.Context, ref sources.Ref) (*sources.Object, error) {
		if ref != own {
			return get(ctx, ref)
		}
		return &sources.Object{Data: map[string][]byte{valuesKey: p.values.text}}, nil
	}
}

// others finds packages that are installed in the same cluster by name; nil if the caller may not
// list them.
func others(ctx context.Context, cl *cluster.Cluster, own corev1alpha1.GenericPackage) (func(string) []loader.Other, error) {
	var all []corev1alpha1.GenericPackage
	for _, scope := range []corev1alpha1.Scope{corev1alpha1.ScopeNamespaced, corev1alpha1.ScopeCluster} {
		list := scope.NewPackageList()
		err := cl.List(ctx, list)
		if apierrors.IsForbidden(err) {
			return nil, nil
		}
		if err != nil {
			return nil, cl.Explain("cannot read the other packages", err)
		}
		all = append(all, list.GenericPackages()...)
	}
	return func(name string) []loader.Other {
		found := []loader.Other{}
		for _, pkg := range all {
			resolved := pkg.PackageStatus().Resolved
			self := pkg.GetNamespace() == own.GetNamespace() && pkg.GetName() == own.GetName()
			there := targets.RefOf(pkg.GetNamespace(), pkg.PackageSpec().TargetRef) == targets.RefOf(own.GetNamespace(), own.PackageSpec().TargetRef)
			if !self && there && resolved != nil && resolved.PackageName == name {
				found = append(found, loader.Other{Namespace: pkg.GetNamespace(), Name: pkg.GetName()})
			}
		}
		return found
	}, nil
}
