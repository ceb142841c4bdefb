package cli

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cluster/environment"
	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/loader"
)

func environmentOf(ctx context.Context, cl *cluster.Cluster, mapper meta.RESTMapper, namespace string) (*manifestsv1alpha1.PackageEnvironment, error) {
	asking, err := discovery.NewDiscoveryClientForConfig(cl.Config)
	if err != nil {
		return nil, fmt.Errorf("make a client for discovery: %w", err)
	}
	info, err := asking.ServerVersion()
	if err != nil {
		return nil, cl.Explain("cannot ask for the cluster's version", err)
	}
	reading, err := dynamic.NewForConfig(cl.Config)
	if err != nil {
		return nil, fmt.Errorf("make a client for the environment: %w", err)
	}
	seen, err := environment.Look(ctx, info.GitVersion,
		func(gk schema.GroupKind, version string) (*meta.RESTMapping, error) {
			if version == "" {
				return mapper.RESTMapping(gk)
			}
			return mapper.RESTMapping(gk, version)
		},
		func(ctx context.Context, s livestate.Selection) ([]metav1.Object, error) {
			opts := metav1.ListOptions{}
			if s.Name != "" {
				opts.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, s.Name).String()
			}
			list, err := reading.Resource(s.Resource).Namespace(s.Namespace).List(ctx, opts)
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

// others finds installed packages by name; nil if the caller may not list them.
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
			if !self && resolved != nil && resolved.PackageName == name {
				found = append(found, loader.Other{Namespace: pkg.GetNamespace(), Name: pkg.GetName()})
			}
		}
		return found
	}, nil
}
