package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/manifest"
	"lockstep.run/lockstep/internal/preview"
	"lockstep.run/lockstep/internal/sources"
)

// planned is a package that was rendered for a plan.
type planned struct {
	target progress.Target
	// pkg is the Package as it would be, before what it is; nil where there is none.
	pkg, before corev1alpha1.GenericPackage
	digest      string
	loaded      *loader.Package
	// client reads kinds of all sorts.
	client client.Client
}

func (p *planned) request() preview.Request {
	r := preview.Request{
		Scope: p.target.Scope, Namespace: p.target.Namespace, Name: p.target.Name,
		Template: p.loaded.Template(), Labels: p.loaded.Labels, ManagerNamespace: corev1alpha1.DefaultNamespace,
	}
	r.ReportDrift = p.pkg.PackageSpec().DriftPolicy == corev1alpha1.DriftPolicyReport
	if p.loaded.Sensitive != nil {
		r.Sensitive = p.loaded.HoldsSensitive
	}
	return r
}

// complete says in the plan what package it is about.
func (p *planned) complete(plan *preview.Plan) {
	plan.To = preview.Release{
		Image: p.pkg.PackageSpec().Image, Digest: p.digest,
		Package: p.loaded.Name, Version: p.loaded.Manifest.Spec.Version,
	}
	for _, w := range p.loaded.Warnings {
		plan.Warnings = append(plan.Warnings, w.String())
	}
	if p.before == nil {
		return
	}
	plan.From = &preview.Release{Image: p.before.PackageSpec().Image, Revision: p.before.PackageStatus().Revision}
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
	if !want.folder {
		image, err := c.source.registry.pullFolder(ctx, "", p.reference())
		if err != nil {
			return p, err
		}
		files, p.digest = image.Files, image.Digest
	}
	if p.client, err = cl.AnyKind(); err != nil {
		return p, err
	}
	opts, err := loaderOptions(ctx, cl, p.client, p.pkg)
	if err != nil {
		return p, err
	}
	p.loaded, err = loader.Load(ctx, files, opts)
	return p, err
}

// nameOf is the name of a package that was given none.
func nameOf(want plannedPackage, files loader.Files) (string, error) {
	if !want.folder {
		ref, err := name.ParseReference(want.source)
		if err != nil {
			return "", err
		}
		return baseName(ref), nil
	}
	result, problems := manifest.Read(files, "", false)
	if result == nil {
		return "", problems.Err()
	}
	return result.Manifest.Name, nil
}

// find reads the installed package, if there is one.
func (c *planCommand) find(ctx context.Context, cl *cluster.Cluster, want plannedPackage, p *planned) error {
	p.target = cl.Target(cmp.Or(want.name.Scope, corev1alpha1.ScopeNamespaced), want.name.Name)
	pkg, err := cl.Read(ctx, p.target)
	switch {
	case err == nil:
		p.before = pkg
		return nil
	case !apierrors.IsNotFound(err) || cluster.Unserved(err):
		return cl.Explain("cannot read "+p.target.String(), err)
	case want.source == "":
		return fmt.Errorf("there is no %s", p.target)
	case want.name.Scope == "":
		// A bare name may be that of a ClusterPackage.
		target := cl.Target(corev1alpha1.ScopeCluster, want.name.Name)
		if pkg, err := cl.Read(ctx, target); err == nil {
			p.target, p.before = target, pkg
		}
	}
	return nil
}

// change makes the Package what it would be.
func (c *planCommand) change(want plannedPackage, p *planned) error {
	if p.before != nil {
		p.pkg = p.before.DeepCopyObject().(corev1alpha1.GenericPackage)
	} else {
		p.pkg = p.target.Scope.NewPackage()
		p.pkg.SetNamespace(p.target.Namespace)
		p.pkg.SetName(p.target.Name)
	}
	spec := p.pkg.PackageSpec()
	if want.source != "" && !want.folder {
		spec.Image = want.source
	}
	if c.changesComponent {
		spec.Component = c.component
	}
	if c.config != "" {
		raw, err := c.readConfig()
		if err != nil {
			return err
		}
		spec.Config = &runtime.RawExtension{Raw: raw}
	}
	return nil
}

// reference is the image to pull. A package whose spec stays as it is stays with
// what its tag stood for.
func (p *planned) reference() string {
	spec := p.pkg.PackageSpec()
	if p.before == nil {
		return spec.Image
	}
	old, resolved := p.before.PackageSpec(), p.before.PackageStatus().Resolved
	same := old.Image == spec.Image && old.Component == spec.Component && sameConfig(old.Config, spec.Config)
	if !same || resolved == nil || resolved.Image != spec.Image || resolved.Digest == "" {
		return spec.Image
	}
	ref, err := name.ParseReference(spec.Image)
	if err != nil {
		return spec.Image
	}
	return ref.Context().Digest(resolved.Digest).Name()
}

func sameConfig(a, b *runtime.RawExtension) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return sameJSON(a.Raw, b.Raw)
}

// loaderOptions says for which installation a package is loaded, as the manager
// does.
func loaderOptions(ctx context.Context, cl *cluster.Cluster, reader client.Client, pkg corev1alpha1.GenericPackage) (loader.Options, error) {
	spec := pkg.PackageSpec()
	env, err := environmentOf(ctx, cl, reader.RESTMapper(), pkg.GetNamespace())
	if err != nil {
		return loader.Options{}, err
	}
	namespace := cmp.Or(pkg.GetNamespace(), corev1alpha1.DefaultNamespace)
	values, err := sources.Read(ctx, sources.Getter(reader), spec, namespace)
	if err != nil {
		return loader.Options{}, err
	}
	opts := sources.Options(pkg, values)
	opts.Environment, opts.Package.Image = env, cmp.Or(spec.Image, loader.StaticImage)
	opts.Namespaced = func(gk schema.GroupKind) (namespaced, known bool) {
		m, err := reader.RESTMapper().RESTMapping(gk)
		return err == nil && m.Scope.Name() == meta.RESTScopeNameNamespace, err == nil
	}
	opts.Others, err = others(ctx, cl, pkg)
	return opts, err
}
