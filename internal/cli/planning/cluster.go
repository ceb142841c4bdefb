package planning

import (
	"context"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/desired"
	"lockstep.run/lockstep/internal/cli/dryrun"
)

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

// environment returns the environment that the package sees of the cluster with its objects.
func (p *Planned) environment(ctx context.Context, cl *cluster.Cluster) (*manifestsv1alpha1.PackageEnvironment, error) {
	namespace := p.Pkg.PackageSpec().TargetRef.NamespaceOf(p.Pkg.GetNamespace())
	if p.Remote != nil {
		cl = p.Remote.Cluster
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
