package planning

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/content"
	"lockstep.run/lockstep/internal/cli/describe"
	"lockstep.run/lockstep/internal/cli/desired"
	"lockstep.run/lockstep/internal/cli/dryrun"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/manifest"
)

// Planned is a changed package, rendered for the cluster.
type Planned struct {
	Target progress.Target

	// Pkg is the Package after the change. Before is the current one; nil if there is none.
	Pkg, Before corev1alpha1.GenericPackage
	digest      string

	// folder of the package; empty for an image.
	folder string
	// chosen is the version of the package ref that packageRef leads to; nil without packageRef.
	chosen   *corev1alpha1.AvailableVersion
	ref      string
	Loaded   *loader.Package
	warnings []string

	// otherScope means that a ClusterPackage was found for a name that would mean a Package.
	otherScope bool
	// values replace the object that install would keep them in; nil for none.
	values *desired.Values
	// Client reads all kinds in the package's cluster, and there reads those in its objects'
	// cluster. remote means that the clusters differ.
	Client, there client.Client
	Remote        *cluster.Remote

	// resolution is nil until the installed packages are read.
	resolution *desired.Resolution
	// images are the cluster's policies for images.
	images *desired.Images
	// all are the packages of the cluster; nil if they were not read yet.
	all []corev1alpha1.GenericPackage
}

// Request returns the input of the dry run.
func (p *Planned) Request() dryrun.Request {
	r := dryrun.Request{
		Scope: p.Target.Scope, Namespace: p.Target.Namespace, Name: p.Target.Name,
		Template: p.Loaded.Template(), Labels: p.Loaded.Labels,
	}

	r.Template.TargetRef = p.Pkg.PackageSpec().TargetRef
	r.Template.ServiceAccountName = p.Pkg.PackageSpec().ServiceAccountName
	// The manager sets its default account, which the plan does not know.
	r.KeepAccount = r.Template.ServiceAccountName == "" && p.Before != nil && p.Before.PackageSpec().ServiceAccountName == ""
	r.ReportDrift = p.Pkg.PackageSpec().DriftPolicy == corev1alpha1.DriftPolicyReport
	r.ArchivalPolicy = p.Pkg.PackageSpec().ArchivalPolicy
	// The function exists only for values from Secrets. Without it, all fields are shown.
	if p.Loaded.Sensitive != nil {
		r.Sensitive = p.Loaded.HoldsSensitive
	}

	return r
}

// Complete adds the releases before and after it to a plan.
func (p *Planned) Complete(plan *dryrun.Plan) {
	plan.To = dryrun.Release{Folder: p.folder, Digest: p.digest, Package: p.Loaded.Name, Version: p.Loaded.Manifest.Spec.Version}
	if p.folder == "" {
		plan.To.Image = p.image()
	}
	if p.chosen != nil {
		plan.To.Version = p.chosen.Version
	}

	plan.Warnings = append(plan.Warnings, p.warnings...)
	if asks := describe.AsksOf(p.Loaded.Manifest); asks != nil {
		plan.Warnings = append(plan.Warnings, asks.String())
	}
	for _, w := range p.Loaded.Warnings {
		plan.Warnings = append(plan.Warnings, w.String())
	}
	if p.Before == nil {
		return
	}
	plan.From = &dryrun.Release{Image: p.Before.PackageSpec().Image, Revision: p.Before.PackageStatus().Revision}
	plan.From.Version = p.Before.PackageStatus().InstalledVersion()
	if r := p.Before.PackageStatus().Resolved; r != nil {
		if p.Before.PackageSpec().PackageRef != nil {
			plan.From.Image = r.Image
		}
		plan.From.Digest, plan.From.Package = r.Digest, r.PackageName
	}

	if p.Before.PackageSpec().Paused {
		plan.Warnings = append(plan.Warnings, "the package is paused: the plan waits until spec.paused is false")
	}
	if p.Before.GetDeletionTimestamp() != nil {
		plan.Warnings = append(plan.Warnings, "the package is being deleted")
	}
}

// Load finds the package and renders it as the manager would.
func (c *Planner) Load(ctx context.Context, cl *cluster.Cluster, want Wanted) (*Planned, error) {
	p := &Planned{all: c.packages}
	var files loader.Files
	var err error
	if want.folder {
		p.folder = want.source
		if files, err = content.ReadFolder(want.source); err != nil {
			return p, err
		}
	}
	if want.Name.Name == "" {
		if want.Name.Name, err = nameOf(want, files); err != nil {
			return p, err
		}
	}

	// The order matters: the changed spec decides on the cluster, the policies and the version.
	if err := c.find(ctx, cl, want, p); err != nil {
		return p, err
	}
	if err := c.change(want, p); err != nil {
		return p, err
	}
	if err := p.connect(ctx, cl, p.Target.Namespace, p.Pkg.PackageSpec().TargetRef); err != nil {
		return p, err
	}

	if p.images, err = desired.ReadImages(ctx, cl, corev1alpha1.DefaultNamespace); err != nil {
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

	// An installed package shows its own error of scope, so that its plan is still shown.
	if err := content.CheckScope(cmp.Or(p.folder, p.Pkg.PackageSpec().Image, p.ref), files, p.Pkg.PackageSpec().Component, p.Target.Scope); err != nil && p.Before == nil {
		return p, err
	}
	opts, err := p.loaderOptions(ctx, cl)
	if err != nil {
		return p, err
	}

	if p.chosen != nil {
		opts.Package.Image = p.chosen.Image
	}
	if p.Loaded, err = loader.Load(ctx, files, opts); err != nil {
		return p, err
	}

	return p, loader.CheckTarget(p.Pkg.PackageSpec().TargetRef, p.Loaded.Dependencies)
}

// nameOf returns the name for a package that no argument names: the repository's package, the last
// part of the image, or the name in the manifest.
func nameOf(want Wanted, files loader.Files) (string, error) {
	if want.ref != nil {
		return want.ref.Name, nil
	}
	if !want.folder {
		ref, err := name.ParseReference(want.source)
		if err != nil {
			return "", err
		}
		return content.BaseName(ref), nil
	}

	result, problems := manifest.Read(files, "")
	if result == nil {
		return "", problems.Err()
	}
	return result.Manifest.Name, nil
}

// find finds the installed package. With a source, the package does not have to exist yet.
func (c *Planner) find(ctx context.Context, cl *cluster.Cluster, want Wanted, p *Planned) error {
	if want.source == "" && want.ref == nil {
		var err error
		p.Target, p.Before, err = cl.Find(ctx, want.Name)
		return err
	}

	p.Target = cl.Target(cmp.Or(want.Name.Scope, corev1alpha1.ScopeNamespaced), want.Name.Name)
	target, pkg, err := cl.Find(ctx, want.Name)
	switch {
	case err == nil:
		p.Target, p.Before = target, pkg
		if want.Name.Scope != target.Scope && target.Scope == corev1alpha1.ScopeCluster {
			p.otherScope = true
			p.warnings = append(p.warnings, fmt.Sprintf(
				"%s was planned, because there is no package of that name in namespace %s; install it as %s", target, cl.Namespace, target.Arg()))
		}

		return nil
	case errors.As(err, new(cluster.NotFoundError)):
		return nil
	case want.Name.Scope == "" && apierrors.IsForbidden(err):
		// A user who may only read Packages means one of them.
		if _, err := cl.Read(ctx, p.Target); apierrors.IsNotFound(err) && !cluster.Unserved(err) {
			return nil
		}
	}

	return err
}

// change makes the wanted changes to the Package.
func (c *Planner) change(want Wanted, p *Planned) error {
	if p.Before != nil {
		if err := desired.KeepsTarget(p.Target, p.Before.PackageSpec(), want.target); err != nil {
			return err
		}
		p.Pkg = p.Before.DeepCopyObject().(corev1alpha1.GenericPackage)
	} else {
		p.Pkg = p.Target.Scope.NewPackage()
		p.Pkg.SetNamespace(p.Target.Namespace)
		p.Pkg.SetName(p.Target.Name)
		p.Pkg.PackageSpec().TargetRef = want.target
	}

	spec := p.Pkg.PackageSpec()
	to := desired.Package{Component: c.Spec.Component, ChangesComponent: c.Spec.Given("component"), Adopts: c.Spec.Adopt}
	switch {
	case want.ref != nil:
		if !desired.SamePackage(spec.PackageRef, want.ref) || c.choice.Given() {
			to.Ref = want.ref // otherwise fields without a flag stay, as with install
		}
	case !want.folder:
		to.Image = want.source
	}

	if want.moves {
		if spec.PackageRef == nil {
			return fmt.Errorf("%s is installed from the image %s, and follows no repository: --version and --prereleases have no effect", p.Target, spec.Image)
		}
		to.Ref = c.choice.Over(spec.PackageRef)
	}

	var err error
	if p.values, err = c.values.Read(c.Streams.In); err != nil {
		return err
	}
	if p.values != nil {
		to.Values = p.values.Source(p.Target)
	}
	if to.Config, err = content.ReadConfig(c.Spec.Config, c.Streams.In); err != nil {
		return err
	}

	to.Into(spec)
	if want.Edit != nil {
		return want.Edit(p.Target, spec)
	}
	return nil
}

// chooseVersion chooses the version that packageRef leads to, if it is set.
func chooseVersion(ctx context.Context, cl *cluster.Cluster, p *Planned) error {
	ref := p.Pkg.PackageSpec().PackageRef
	if ref == nil {
		return nil
	}

	choose := p.chooser(cl)
	name, err := desired.NameFor(p.Before, ref)
	if err != nil {
		return err
	}
	request := choose.RequestFor(ctx, p.Before, ref, name)
	found, err := choose.MustChoose(ctx, name, request, desired.Kept(p.Before, ref, request))
	if err != nil {
		return err
	}
	if found.Kept != nil {
		p.warnings = append(p.warnings, name+": "+found.Message)
	}
	// A version that is installed already was chosen with its dependencies, so it stays.
	if resolved := p.Pkg.PackageStatus().Resolved; len(found.Version().Version.Dependencies) > 0 && p.Remote == nil && !desired.UserManages(p.Pkg.PackageSpec()) &&
		(resolved == nil || resolved.Version != found.Version().Version.Version) {
		resolution, err := p.resolve(ctx, cl)
		if err != nil {
			return err
		}
		why, err := resolution.ChooseByNeeds(found, p.Pkg, request)
		if err != nil {
			return err
		}
		if why != "" {
			p.warnings = append(p.warnings, why)
		}
	}

	p.chosen, p.ref = &found.Version().Version, name
	return nil
}

// connect creates the clients for the package and its objects.
func (p *Planned) connect(ctx context.Context, cl *cluster.Cluster, namespace string, ref *corev1alpha1.TargetReference) (err error) {
	if p.Client, err = cl.AnyKind(); err != nil {
		return err
	}

	p.there = p.Client
	if p.Remote, err = cl.Remote(ctx, namespace, ref); err != nil || p.Remote == nil {
		return err
	}
	p.there, err = p.Remote.AnyKind()
	return err
}

// Preview connects for dry runs.
func (p *Planned) Preview(cl *cluster.Cluster) (*dryrun.Cluster, error) {
	if p.Remote == nil {
		return dryrun.Connect(cl.Config, p.Client)
	}

	at, err := dryrun.Connect(p.Remote.Config, p.Client)
	if err == nil {
		at.ID, at.Home = p.Remote.ID, p.Remote.Home
	}
	return at, err
}

// chooser chooses versions for the cluster that holds the objects.
func (p *Planned) chooser(cl *cluster.Cluster) *desired.Chooser {
	c := desired.ChooserFor(cl, p.Target.Namespace).At(p.Pkg.PackageSpec().TargetRef)
	if p.Remote != nil {
		c.There = p.Remote.Cluster
	}
	return c
}

// ConnectPreview connects for dry runs of a package in a namespace, which is empty for a
// ClusterPackage.
func ConnectPreview(ctx context.Context, cl *cluster.Cluster, namespace string, ref *corev1alpha1.TargetReference) (*dryrun.Cluster, error) {
	p := &Planned{}
	if err := p.connect(ctx, cl, namespace, ref); err != nil {
		return nil, err
	}
	return p.Preview(cl)
}
