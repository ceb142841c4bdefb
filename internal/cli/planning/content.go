package planning

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/offers"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/desired"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/inputs/targets"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/loader"
)

// image is the image to load; empty for manifests in the repository itself.
func (p *Planned) image() string {
	if p.chosen != nil {
		return p.chosen.Image
	}
	return p.Pkg.PackageSpec().Image
}

// content reads the package. It turns plain manifests of a repository into a package.
func (c *Planner) content(ctx context.Context, p *Planned) (files loader.Files, err error) {
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

// pull reads the package from its image, with the pull secrets of the Package if the user may read
// them, otherwise with the user's credentials.
func (c *Planner) pull(ctx context.Context, p *Planned) (loader.Files, error) {
	keys, missing, err := sources.Keychain(ctx, sources.Getter(p.Client), sources.PullSecrets(p.Pkg.PackageSpec(), p.home()))
	if err != nil {
		return nil, err
	}

	trusted, err := p.images.Trust(ctx, &c.Source.Registry, sources.Reference(p.Pkg, p.image(), p.changed()), keys)
	if err != nil {
		return nil, withMissing(err, missing)
	}

	p.warnings = append(p.warnings, trusted.Warnings...)
	image, err := c.Source.Registry.PullFrom(ctx, "", trusted.Ref, trusted.Keys)
	// An image without files of a package can be a plain bundle of manifests.
	if err == nil && p.chosen != nil && len(image.Files) == 0 {
		image, err = c.Source.Registry.PullManifests(ctx, sources.ByDigest(trusted.Ref, image.Digest), p.image(), trusted.Keys)
	}
	if err != nil {
		return nil, withMissing(err, missing)
	}

	for _, problem := range missing {
		p.warnings = append(p.warnings, "spec.imagePullSecrets: "+problem)
	}

	p.digest = image.Digest
	return image.Files, nil
}

// withMissing adds the unusable pull secrets of the spec to an error.
func withMissing(err error, missing []string) error {
	if len(missing) == 0 {
		return err
	}
	return fmt.Errorf("%w (unusable spec.imagePullSecrets: %s)", err, strings.Join(missing, "; "))
}

// home is the namespace of the objects that the spec names.
func (p *Planned) home() string { return cmp.Or(p.Pkg.GetNamespace(), corev1alpha1.DefaultNamespace) }

// changed reports whether the manager has not unpacked the changed spec yet.
func (p *Planned) changed() bool {
	if p.Before == nil || !conditions.IsTrueFor(*p.Before.StatusConditions(), corev1alpha1.ConditionUnpacked, p.Before.GetGeneration()) {
		return true
	}

	old, spec := p.Before.PackageSpec(), p.Pkg.PackageSpec()
	return old.Image != spec.Image || old.Component != spec.Component || !desired.SameConfig(old.Config, spec.Config)
}

// loaderOptions returns the manager's options for a package.
func (p *Planned) loaderOptions(ctx context.Context, cl *cluster.Cluster) (loader.Options, error) {
	pkg, spec := p.Pkg, p.Pkg.PackageSpec()
	there := cl
	if p.Remote != nil {
		there = p.Remote.Cluster
	}
	env, err := desired.EnvironmentOf(ctx, there, p.there.RESTMapper(), spec.TargetRef.NamespaceOf(pkg.GetNamespace()))
	if err != nil {
		return loader.Options{}, err
	}
	values, err := sources.Read(ctx, p.sources(), spec, p.home())
	if err != nil {
		return loader.Options{}, err
	}

	opts := sources.Options(pkg, values)
	opts.Environment, opts.Package.Image = env, cmp.Or(spec.Image, loader.StaticImage)
	// A kind that the cluster does not serve is unknown, which is not the same as cluster-scoped.
	opts.Namespaced = func(gk schema.GroupKind) (namespaced, known bool) {
		m, err := p.there.RESTMapper().RESTMapping(gk)
		return err == nil && m.Scope.Name() == meta.RESTScopeNameNamespace, err == nil
	}
	opts.ImageOverride, opts.Rewrite = p.images.Rewrite, p.images.RewriteInObject
	opts.Others, err = p.others(ctx, cl)

	return opts, err
}

// sources reads the objects that the spec names. The values of the plan replace the object that
// install would write.
func (p *Planned) sources() sources.Get {
	get := sources.Getter(p.Client)
	if p.values == nil {
		return get
	}

	source := p.values.Source(p.Target)
	own := sources.Ref{Kind: desired.SourceKind(*source), Namespace: desired.ValuesNamespace(p.Target), Name: p.Target.Name + desired.ValuesSuffix}
	return func(ctx context.Context, ref sources.Ref) (*sources.Object, error) {
		if ref != own {
			return get(ctx, ref)
		}
		return &sources.Object{Data: map[string][]byte{desired.ValuesKey: p.values.Text}}, nil
	}
}

// others finds packages in the same cluster by name; nil if the user may not list them.
func (p *Planned) others(ctx context.Context, cl *cluster.Cluster) (func(string) []loader.Other, error) {
	if p.all == nil {
		all, hidden, err := cl.Packages(ctx)
		if err != nil || len(hidden) > 0 {
			return nil, err
		}
		p.all = all
	}

	own := p.Pkg
	return func(name string) []loader.Other {
		found := []loader.Other{}
		// The version of one package does not matter to another cluster's packages.
		for _, pkg := range p.all {
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
