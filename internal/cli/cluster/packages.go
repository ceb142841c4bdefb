package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/terminal"
)

const packagePage = 500 // Packages in one response: statuses of a few KiB each

// Packages reads the ClusterPackages and the Packages of all namespaces; those of the one
// namespace where others may not be read, and no ClusterPackages where these may not be.
// hidden names the parts left out.
func (c *Cluster) Packages(ctx context.Context) (found []corev1alpha1.GenericPackage, hidden []string, err error) {
	everyone, err := c.PackagesOf(ctx, corev1alpha1.ScopeNamespaced, "")
	if apierrors.IsForbidden(err) && c.Namespace != "" {
		hidden = append(hidden, "packages of other namespaces")
		everyone, err = c.PackagesOf(ctx, corev1alpha1.ScopeNamespaced, c.Namespace)
	}
	if err != nil {
		return nil, nil, c.Explain("cannot read the packages", err)
	}
	ofCluster, err := c.PackagesOf(ctx, corev1alpha1.ScopeCluster, "")
	if apierrors.IsForbidden(err) {
		hidden, err = append(hidden, "clusterpackages"), nil
	}
	return append(everyone, ofCluster...), hidden, c.Explain("cannot read the clusterpackages", err)
}

// PackagesOf reads the Packages of a namespace, of all where it is empty, or the ClusterPackages, in pages.
func (c *Cluster) PackagesOf(ctx context.Context, scope corev1alpha1.Scope, namespace string) ([]corev1alpha1.GenericPackage, error) {
	var found []corev1alpha1.GenericPackage
	for next := ""; ; {
		list := scope.NewPackageList()
		if err := c.List(ctx, list, client.InNamespace(namespace), client.Limit(packagePage), client.Continue(next)); err != nil {
			return nil, err
		}
		found = append(found, list.GenericPackages()...)
		if next = list.GetContinue(); next == "" {
			return found, nil
		}
	}
}

// PackagesByNamespace reads the Packages of the namespaces in which the user may, who may not list those of all at once, by the
// error of which. forbidden says of how many namespaces there are others.
func (c *Cluster) PackagesByNamespace(ctx context.Context, refused error) (found []corev1alpha1.GenericPackage, forbidden []string, err error) {
	var namespaces corev1.NamespaceList
	if err := c.List(ctx, &namespaces); err != nil {
		if !apierrors.IsForbidden(err) {
			return nil, nil, err
		}
		return nil, nil, fmt.Errorf("%w. Namespaces may not be listed either: choose one with -n", refused)
	}
	count := 0
	for _, ns := range namespaces.Items {
		own, err := c.PackagesOf(ctx, corev1alpha1.ScopeNamespaced, ns.Name)
		if apierrors.IsForbidden(err) {
			count++
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		found = append(found, own...)
	}
	if count > 0 {
		forbidden = []string{"Packages of " + terminal.Count(count, "namespace")}
	}
	return found, forbidden, nil
}

// Deployments reads the ObjectDeployments of all namespaces, or the ClusterObjectDeployments.
func (c *Cluster) Deployments(ctx context.Context, scope corev1alpha1.Scope) (found []corev1alpha1.GenericObjectDeployment, err error) {
	for next := ""; ; {
		list := scope.NewObjectDeploymentList()
		if err := c.List(ctx, list, client.Limit(packagePage), client.Continue(next)); err != nil {
			return nil, c.Explain("cannot read the deployments of packages", err)
		}
		found = append(found, list.GenericObjectDeployments()...)
		if next = list.GetContinue(); next == "" {
			return found, nil
		}
	}
}
