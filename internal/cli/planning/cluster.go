package planning

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/desired"
	"lockstep.run/lockstep/internal/cli/dryrun"
	"lockstep.run/lockstep/internal/inputs/environment"
)

// shared is used to load and plan all packages of a cluster, so that the cluster is read once.
type shared struct {
	client client.Client
	at     *dryrun.Cluster
	images *desired.Images
	// packages are all packages of the cluster; nil if the user may not list them.
	packages []corev1alpha1.GenericPackage
	// seen is the environment that packages see of the cluster.
	seen *environment.Detector
}

// share connects, for many packages.
func share(ctx context.Context, cl *cluster.Cluster, packages []corev1alpha1.GenericPackage) (*shared, error) {
	s := &shared{packages: packages}
	var err error
	if s.client, err = cl.AnyKind(); err != nil {
		return nil, err
	}
	if s.at, err = dryrun.Connect(cl.Config, s.client); err != nil {
		return nil, err
	}
	if s.images, err = desired.ReadImages(ctx, cl, corev1alpha1.DefaultNamespace); err != nil {
		return nil, err
	}
	s.seen, err = desired.Look(ctx, cl, s.at.Mapper)
	return s, err
}

// connect creates the clients for the package and its objects.
func (p *Planned) connect(ctx context.Context, cl *cluster.Cluster, namespace string, ref *corev1alpha1.TargetReference) (err error) {
	if p.shared != nil {
		p.Client = p.shared.client
	} else if p.Client, err = cl.AnyKind(); err != nil {
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
	if p.Remote == nil && p.shared != nil {
		return p.shared.at, nil
	}
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

// environment returns the environment that the package sees of the cluster with its objects.
func (p *Planned) environment(ctx context.Context, cl *cluster.Cluster) (*manifestsv1alpha1.PackageEnvironment, error) {
	namespace := p.Pkg.PackageSpec().TargetRef.NamespaceOf(p.Pkg.GetNamespace())
	switch {
	case p.Remote != nil:
		cl = p.Remote.Cluster
	case p.shared != nil:
		env, _, err := p.shared.seen.For(namespace)
		return &env, err
	}
	return desired.EnvironmentOf(ctx, cl, p.there.RESTMapper(), namespace)
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
