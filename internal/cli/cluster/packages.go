package cluster

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// Packages reads the ClusterPackages and the Packages of all namespaces. If the user may not read
// other namespaces, it reads only the current one, and it skips ClusterPackages that the user may
// not read. hidden names the parts left out.
func (c *Cluster) Packages(ctx context.Context) (found []corev1alpha1.GenericPackage, hidden []string, err error) {
	everyone, err := c.PackagesOf(ctx, corev1alpha1.ScopeNamespaced, "")
	// Rights in one namespace are common, so a refusal leads to a smaller result.
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

// PackagesOf reads the Packages of a namespace, or of all if it is empty, or the ClusterPackages,
// in pages.
func (c *Cluster) PackagesOf(ctx context.Context, scope corev1alpha1.Scope, namespace string) ([]corev1alpha1.GenericPackage, error) {
	var found []corev1alpha1.GenericPackage
	err := EachPage(ctx, c, namespace, PackagePage, scope.NewPackageList, func(page corev1alpha1.GenericPackageList) error {
		found = append(found, page.GenericPackages()...)
		return nil
	})

	return found, err
}

// Deployments reads the ObjectDeployments of all namespaces, or the ClusterObjectDeployments.
func (c *Cluster) Deployments(ctx context.Context, scope corev1alpha1.Scope) ([]corev1alpha1.GenericObjectDeployment, error) {
	var found []corev1alpha1.GenericObjectDeployment
	err := EachPage(ctx, c, "", PackagePage, scope.NewObjectDeploymentList, func(page corev1alpha1.GenericObjectDeploymentList) error {
		found = append(found, page.GenericObjectDeployments()...)
		return nil
	})

	return found, c.Explain("cannot read the deployments of packages", err)
}

// Numbers of objects in one response.
const (
	// PackagePage is for Packages and ObjectDeployments, of a few KiB each.
	PackagePage = 500
	// SetPage is for ObjectSets, which can have 1 MiB.
	SetPage = 50
)

// EachPage lists objects in pages of a size. list returns an empty list, and use gets each page.
func EachPage[L client.ObjectList](ctx context.Context, reader client.Reader, namespace string, size int64, list func() L, use func(L) error) error {
	for next := ""; ; {
		page := list()
		if err := reader.List(ctx, page, client.InNamespace(namespace), client.Limit(size), client.Continue(next)); err != nil {
			return err
		}
		if err := use(page); err != nil {
			return err
		}
		if next = page.GetContinue(); next == "" {
			return nil
		}
	}
}
