package cli

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/dryrun"
	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/inputs/environment"
)

// connect makes the clients for the package and its objects.
func (p *planned) connect(ctx context.Context, cl *cluster.Cluster, namespace string, ref *corev1alpha1.TargetReference) (err error) {
	if p.client, err = cl.AnyKind(); err != nil {
		return err
	}
	p.there = p.client
	if p.remote, err = cl.Remote(ctx, namespace, ref); err != nil || p.remote == nil {
		return err
	}
	p.there, err = p.remote.AnyKind()
	return err
}

// preview connects for dry runs.
func (p *planned) preview(ctx context.Context, cl *cluster.Cluster) (*dryrun.Cluster, error) {
	if p.remote == nil {
		return dryrun.Connect(ctx, cl.Config, p.client)
	}
	return dryrun.ConnectTarget(ctx, p.remote.Config, p.client, p.there, p.remote.ID, p.remote.Home)
}

// chooser chooses versions for the cluster that the objects are in.
func (p *planned) chooser(cl *cluster.Cluster) *chooser {
	c := chooserFor(cl, p.target.Namespace).at(p.pkg.PackageSpec().TargetRef)
	if p.remote != nil {
		c.there = p.remote.Cluster
	}
	return c
}

// environment is what the package sees of the cluster that its objects are in.
func (p *planned) environment(ctx context.Context, cl *cluster.Cluster) (*manifestsv1alpha1.PackageEnvironment, error) {
	if p.remote != nil {
		cl = p.remote.Cluster
	}
	return environmentOf(ctx, cl, p.there.RESTMapper(), p.pkg.PackageSpec().TargetRef.NamespaceOf(p.pkg.GetNamespace()))
}

func environmentOf(ctx context.Context, cl *cluster.Cluster, mapper meta.RESTMapper, namespace string) (*manifestsv1alpha1.PackageEnvironment, error) {
	versions, err := discovery.NewDiscoveryClientForConfig(cl.Config)
	if err != nil {
		return nil, fmt.Errorf("make a client for discovery: %w", err)
	}
	info, err := versions.ServerVersion()
	if err != nil {
		return nil, cl.Explain("cannot ask for the cluster's version", err)
	}
	reader, err := dynamic.NewForConfig(cl.Config)
	if err != nil {
		return nil, fmt.Errorf("make a client for the environment: %w", err)
	}
	seen, err := environment.Look(ctx, info.GitVersion,
		func(gk schema.GroupKind, version string) (*meta.RESTMapping, error) {
			return mapper.RESTMapping(gk, slices.DeleteFunc([]string{version}, func(v string) bool { return v == "" })...)
		},
		func(ctx context.Context, s livestate.Selection) ([]metav1.Object, error) {
			opts := metav1.ListOptions{}
			if s.Name != "" {
				opts = metav1.SingleObject(metav1.ObjectMeta{Name: s.Name})
			}
			list, err := reader.Resource(s.Resource).Namespace(s.Namespace).List(ctx, opts)
			if err != nil {
				return nil, err
			}
			all := make([]metav1.Object, len(list.Items))
			for i := range list.Items {
				all[i] = &list.Items[i]
			}
			return all, nil
		})
	if err != nil {
		return nil, cl.Explain("cannot look at the cluster", err)
	}
	env, _, err := seen.For(namespace)
	return &env, err
}
