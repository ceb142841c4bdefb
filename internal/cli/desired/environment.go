package desired

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/inputs/environment"
)

// look reads the versions of the cluster that holds the objects; nil if the user may not.
func (c *Chooser) look(ctx context.Context) *versions.Platform {
	at := c.There
	if at == nil {
		var err error
		if at, err = c.Cluster.At(ctx, c.Namespace, c.target); err != nil {
			// An unreadable cluster is not an error: the manager, which has its own rights, checks
			// the constraints.
			return nil
		}
	}

	reader, err := at.AnyKind()
	if err != nil {
		return nil
	}
	env, err := EnvironmentOf(ctx, at, reader.RESTMapper(), c.target.NamespaceOf(c.Namespace))
	if err != nil {
		return nil
	}

	found := &versions.Platform{Kubernetes: env.Kubernetes.Version}
	if env.OpenShift != nil {
		found.OpenShift = env.OpenShift.Version
	}
	return found
}

// Platform describes the cluster that versions would run on; nil if the user may not read it.
func (c *Chooser) Platform(ctx context.Context) *versions.Platform {
	if !c.looked {
		c.platform, c.looked = c.look(ctx), true
	}
	return c.platform
}

// EnvironmentOf returns the environment that the packages of a namespace see of a cluster.
func EnvironmentOf(ctx context.Context, cl *cluster.Cluster, mapper meta.RESTMapper, namespace string) (*manifestsv1alpha1.PackageEnvironment, error) {
	versions, err := discovery.NewDiscoveryClientForConfig(cl.Config)
	if err != nil {
		return nil, fmt.Errorf("make a client for discovery: %w", err)
	}
	info, err := versions.ServerVersion()
	if err != nil {
		return nil, cl.Explain("cannot read the cluster's version", err)
	}

	reader, err := dynamic.NewForConfig(cl.Config)
	if err != nil {
		return nil, fmt.Errorf("make a client for the environment: %w", err)
	}

	seen, err := environment.Look(ctx, info.GitVersion,
		func(gk schema.GroupKind, version string) (*meta.RESTMapping, error) {
			// RESTMapping would look for a version with an empty name.
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
		return nil, cl.Explain("cannot examine the cluster", err)
	}

	env, _, err := seen.For(namespace)
	return &env, err
}
