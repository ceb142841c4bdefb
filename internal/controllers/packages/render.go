package packages

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/fetch"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/archive"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
	"lockstep.run/lockstep/internal/loader/manifest"
	"lockstep.run/lockstep/internal/loader/registry"
	"lockstep.run/lockstep/internal/loader/violation"
	"lockstep.run/lockstep/internal/objects/objectslices"
)

// load pulls and renders. Its error is a *registry.PullError, violation.Violations, or of the API server.
func (p *Pipeline) load(ctx context.Context, in input) (*content, error) {
	loaded, err := p.pullAndRender(ctx, in)
	return loaded, forKindOf(in.pkg, err)
}

// forKindOf makes remedies name the ClusterPackage where the Package is one, and where its configuration comes from.
func forKindOf(pkg corev1alpha1.GenericPackage, err error) error {
	spec := pkg.PackageSpec()
	var replace [][2]string
	if pkg.GetNamespace() == "" {
		replace = append(replace, [2]string{" of the Package.", " of the ClusterPackage."})
	}
	switch {
	case len(spec.ConfigFrom) > 0 && spec.Config == nil:
		replace = append(replace, [2]string{"Correct spec.config of", "Correct the values that spec.configFrom names of"})
	case len(spec.ConfigFrom) > 0:
		replace = append(replace, [2]string{"Correct spec.config of", "Correct spec.config, or the values that spec.configFrom names, of"})
	}
	var wrong violation.Violations
	if len(replace) == 0 || !errors.As(err, &wrong) {
		return err
	}
	named := slices.Clone(wrong)
	for i, v := range named {
		for _, pair := range replace {
			v.Remedy = strings.ReplaceAll(v.Advice(), pair[0], pair[1])
		}
		named[i] = v
	}
	return named
}

func (p *Pipeline) pullAndRender(ctx context.Context, in input) (*content, error) {
	place := &admission{pipeline: p, in: in, load: ctx}
	defer place.leave()
	image, verification, err := p.pull(ctx, in, place.enter)
	if err != nil {
		return nil, err
	}
	// The values are kept for this one rendering only.
	values, err := sources.Read(ctx, p.Guard.For(in.reader, p.Get), in.pkg.PackageSpec(), in.namespace)
	if err != nil {
		return nil, err
	}
	if err := place.enter(); err != nil { // another load has unpacked it, or it is no image
		return nil, err
	}
	files := image.Files
	if in.origin.Version != "" && !loader.HasManifest(files) {
		if files, err = loader.Plain(in.origin.PackageName, files, in.origin.Declared); err != nil {
			return nil, err
		}
	}
	within, leave, err := p.processors.Enter(place.ctx, in.namespace)
	if err != nil {
		return nil, err
	}
	defer leave()
	pkg, err := loader.Load(within, files, p.optionsFor(in, values))
	if err == nil {
		err = loader.CheckTarget(in.pkg.PackageSpec().TargetRef, pkg.Dependencies)
	}
	if err != nil {
		return nil, err
	}
	loaded := p.contentOf(in, image, pkg)
	loaded.verification = verification
	return loaded, nil
}

// pull returns the package in an image, or plain manifests: of an image that a repository offers, or its own. The digest that the
// reference leads to is the one that is verified, and the one that is pulled then.
func (p *Pipeline) pull(ctx context.Context, in input, admit func() error) (image *registry.Image, verified *imagepolicy.Outcome, err error) {
	if in.origin.Image == "" {
		if refusal := in.policies.WithoutImage(); refusal != nil {
			return nil, nil, refusal
		}
		files := loader.Files{}
		for path, text := range in.origin.Files {
			files[path] = []byte(text)
		}
		return &registry.Image{Digest: in.origin.Digest, Files: files}, nil, nil
	}
	decision := in.decision()
	ref := decision.Pull
	if decision.Verification != nil || decision.Refusal != nil {
		if ref, verified, err = p.verify(ctx, in, decision); err != nil {
			return nil, nil, err
		}
	}
	pull := func(selection *archive.Selection, ref string) error {
		access := registry.Access{Selection: selection, Room: p.roomOf(in.size), Admit: admit}
		return p.access(ctx, in, decision, access, func(puller *registry.Puller) (err error) {
			if image, err = p.timed(ctx, puller, ref); err == nil && selection != nil {
				image, err = relocated(ctx, puller, ref, in.image, image)
			}
			return err
		})
	}
	err = pull(nil, ref)
	if err == nil && in.origin.Version != "" && len(image.Files) == 0 {
		digest := image.Digest
		err = pull(loader.PlainManifests, sources.ByDigest(ref, digest))
	}
	return image, verified, err
}

// timed pulls an image, and counts how long that took.
func (p *Pipeline) timed(ctx context.Context, puller *registry.Puller, ref string) (*registry.Image, error) {
	began := time.Now()
	image, err := puller.Pull(ctx, ref)
	if p.Pulled != nil {
		p.Pulled(time.Since(began), err)
	}
	return image, err
}

// relocated is a bundle of manifests with the images of its lock, in the repository of the reference as it is written: policies are
// about that one. The pulled files may be shared, and stay as they are.
func relocated(ctx context.Context, puller *registry.Puller, pulled, written string, image *registry.Image) (*registry.Image, error) {
	files, err := fetch.Relocate(ctx, puller, fetch.RepositoryOf(pulled), fetch.RepositoryOf(written), image.Digest, image.Files)
	if err != nil {
		return nil, err
	}
	own := *image
	own.Files = files
	return &own, nil
}

func (p *Pipeline) optionsFor(in input, values *sources.Values) loader.Options {
	o := sources.Options(in.pkg, values)
	o.Environment, o.ManagerVersion = &in.environment, in.manager
	o.Namespaced, o.ImageOverride, o.Rewrite = p.Namespaced, p.overrideOf(in), in.policies.RewriteInObject
	if in.namespaced != nil {
		o.Namespaced = in.namespaced
	}
	o.Package.Image, o.ResolvesDependencies, o.Bytes = in.origin.Image, true, p.Memory.PackageBytes()
	o.Others = func(name string) []loader.Other {
		others := []loader.Other{}
		for _, key := range in.installations(name) {
			others = append(others, loader.Other{Namespace: key.Namespace, Name: key.Name})
		}
		return others
	}
	return o
}

func (p *Pipeline) contentOf(in input, image *registry.Image, pkg *loader.Package) *content {
	loaded := &content{
		resolved: corev1alpha1.ResolvedPackage{
			PackageName: pkg.Name, Version: cmp.Or(in.origin.Version, pkg.Manifest.Spec.Version),
			Image: in.origin.Image, Digest: image.Digest, Repository: in.origin.Repository,
			CatalogName:   cmp.Or(in.origin.PackageName, pkg.CatalogName),
			UniqueInScope: pkg.UniqueInScope, Provides: pkg.Announced(),
			Images: pkg.Images, OmittedImages: int32(pkg.OmittedImages), //nolint:gosec // bounded by limits
		},
		sourceImage: p.overrideOf(in)(in.origin.Image),
		labels:      pkg.Labels, template: pkg.Template(), dependencies: pkg.Dependencies,
		rules: manifest.Rules(pkg.Manifest.Spec.Permissions),
	}
	if pkg.Sensitive != nil {
		loaded.sealing = &objectslices.Sealing{Key: in.hashKey, Holds: pkg.HoldsSensitive}
	}
	for _, warning := range pkg.Warnings {
		loaded.warnings = append(loaded.warnings, warning.String())
	}
	return loaded
}
