package load

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

// Load pulls and renders. Its error is a *registry.PullError, violation.Violations, or of the API
// server.
func (p *Pipeline) Load(ctx context.Context, in Request) (*Content, error) {
	loaded, err := p.pullAndRender(ctx, in)
	return loaded, forKindOf(in.Pkg, err)
}

// forKindOf makes remedies name the ClusterPackage and the source of its configuration if the
// Package is one.
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

// pullAndRender pulls the image, reads the values of Secrets and ConfigMaps, and loads the package.
// Memory is reserved before content is unpacked, and released at the end.
func (p *Pipeline) pullAndRender(ctx context.Context, in Request) (*Content, error) {
	place := &admission{pipeline: p, in: in, load: ctx}
	defer place.leave()
	image, verification, err := p.pull(ctx, in, place.enter, place.pause)
	if err != nil {
		return nil, err
	}

	// The values are kept for this one rendering only.
	values, err := sources.Read(ctx, p.Guard.For(in.Reader, p.Get), in.Pkg.PackageSpec(), in.Namespace)
	if err != nil {
		return nil, err
	}
	if err := place.enter(); err != nil { // another load has unpacked it, or it is not an image
		return nil, err
	}

	files := image.Files
	if in.Origin.Version != "" && !loader.HasManifest(files) {
		if files, err = loader.Plain(in.Origin.PackageName, files, in.Origin.Declared); err != nil {
			return nil, err
		}
	}

	pkg, err := loader.Load(place.ctx, files, p.optionsFor(in, values))
	if err == nil {
		err = loader.CheckTarget(in.Pkg.PackageSpec().TargetRef, pkg.Dependencies)
	}
	if err != nil {
		return nil, err
	}

	loaded := p.contentOf(in, image, pkg)
	loaded.Verification = verification
	return loaded, nil
}

// pull returns the package in an image, or plain manifests: from an image that a repository offers,
// or from the Package's own image. It pulls the digest that it verified.
func (p *Pipeline) pull(ctx context.Context, in Request, admit func() error, pause func()) (image *registry.Image, verified *imagepolicy.Outcome, err error) {
	if in.Origin.Image == "" {
		if refusal := in.Policies.WithoutImage(); refusal != nil {
			return nil, nil, refusal
		}
		files := loader.Files{}
		for path, text := range in.Origin.Files {
			files[path] = []byte(text)
		}
		return &registry.Image{Digest: in.Origin.Digest, Files: files}, nil, nil
	}

	decision := in.decision()
	ref := decision.Pull
	if decision.Verification != nil || decision.Refusal != nil {
		if ref, verified, err = p.verify(ctx, in, decision); err != nil {
			return nil, nil, err
		}
	}

	pull := func(selection *archive.Selection, ref string) error {
		access := registry.Access{Selection: selection, Room: p.roomOf(in.Size), Admit: admit}
		return p.access(ctx, in, decision, access, func(puller *registry.Puller) (err error) {
			if image, err = p.timed(ctx, puller, ref); err == nil && selection != nil {
				image, err = relocated(ctx, puller, ref, in.Image, image)
			}
			return err
		})
	}

	err = pull(nil, ref)
	// The image of an offered version can have plain manifests instead of a package.
	if err == nil && in.Origin.Version != "" && len(image.Files) == 0 {
		digest := image.Digest
		pause()
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

// relocated returns a bundle of manifests with the images of its lock, in the repository of the
// reference as written, because policies refer to that one. It does not change the pulled files,
// which can be shared.
func relocated(ctx context.Context, puller *registry.Puller, pulled, written string, image *registry.Image) (*registry.Image, error) {
	files, err := fetch.Relocate(ctx, puller, loader.RepositoryOf(pulled), loader.RepositoryOf(written), image.Digest, image.Files)
	if err != nil {
		return nil, err
	}
	own := *image
	own.Files = files
	return &own, nil
}

// optionsFor returns the options of the loader for an installation.
func (p *Pipeline) optionsFor(in Request, values *sources.Values) loader.Options {
	o := sources.Options(in.Pkg, values)
	o.Environment, o.ManagerVersion = &in.Environment, in.Manager
	o.Namespaced, o.ImageOverride, o.Rewrite = p.Namespaced, p.overrideOf(in), in.Policies.RewriteInObject
	if in.Namespaced != nil {
		o.Namespaced = in.Namespaced
	}

	o.Package.Image, o.Bytes = in.Origin.Image, p.Memory.PackageBytes()
	o.Others = func(name string) []loader.Other {
		others := []loader.Other{}
		for _, key := range in.installations(name) {
			others = append(others, loader.Other{Namespace: key.Namespace, Name: key.Name})
		}
		return others
	}

	return o
}

// contentOf returns the parts of a loaded package that the controller keeps. The rest, such as
// files and the configuration, is garbage after the load.
func (p *Pipeline) contentOf(in Request, image *registry.Image, pkg *loader.Package) *Content {
	loaded := &Content{
		Resolved: corev1alpha1.ResolvedPackage{
			PackageName: pkg.Name, Version: cmp.Or(in.Origin.Version, pkg.Manifest.Spec.Version),
			Image: in.Origin.Image, Digest: image.Digest, Repository: in.Origin.Repository,
			CatalogName:   cmp.Or(in.Origin.PackageName, pkg.CatalogName),
			UniqueInScope: pkg.UniqueInScope, Provides: pkg.Announced(),
			Images: pkg.Images, OmittedImages: int32(pkg.OmittedImages), //nolint:gosec // bounded by limits
		},
		Labels: pkg.Labels, Template: pkg.Template(), Dependencies: pkg.Dependencies,
		Rules: manifest.Rules(pkg.Manifest.Spec.Permissions),
	}

	if decision := in.decision(); decision.Rewritten {
		loaded.Mirror = decision.Pull + " by the ImageConfig " + decision.Rewriter
	}
	if pkg.Sensitive != nil {
		loaded.Sealing = &objectslices.Sealing{Key: in.HashKey, Holds: pkg.HoldsSensitive}
	}

	for _, warning := range pkg.Warnings {
		loaded.Warnings = append(loaded.Warnings, warning.String())
	}

	if in.Pkg.GetAnnotations()[corev1alpha1.CollisionProtectionAnnotation] != "" && in.Pkg.PackageSpec().CollisionProtection == "" {
		loaded.Warnings = append(loaded.Warnings, "the annotation "+corev1alpha1.CollisionProtectionAnnotation+" is for objects of packages: set spec.collisionProtection")
	}
	return loaded
}
