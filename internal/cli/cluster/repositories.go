package cluster

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
)

// RepositoryName names a PackageRepository or a ClusterPackageRepository.
type RepositoryName struct {
	// Scope is empty if the argument has no kind.
	Scope corev1alpha1.Scope
	Name  string
}

var repositoryKinds = map[string]corev1alpha1.Scope{
	"packagerepository": corev1alpha1.ScopeNamespaced, "packagerepositories": corev1alpha1.ScopeNamespaced,
	"clusterpackagerepository": corev1alpha1.ScopeCluster, "clusterpackagerepositories": corev1alpha1.ScopeCluster,
}

// ParseRepository parses NAME, packagerepository/NAME or clusterpackagerepository/NAME.
func ParseRepository(arg string) (RepositoryName, error) {
	kind, name, slash := strings.Cut(arg, "/")
	if !slash {
		return RepositoryName{Name: arg}, nil
	}
	scope, known := repositoryKinds[strings.TrimSuffix(strings.ToLower(kind), "."+corev1alpha1.GroupName)]
	if !known || name == "" || strings.Contains(name, "/") {
		return RepositoryName{}, fmt.Errorf("%q is not a name of a repository: write NAME, packagerepository/NAME or clusterpackagerepository/NAME", arg)
	}
	return RepositoryName{Scope: scope, Name: name}, nil
}

// NewRepository returns an empty repository of a scope and name.
func (c *Cluster) NewRepository(scope corev1alpha1.Scope, name string) corev1alpha1.GenericPackageRepository {
	r := scope.NewPackageRepository()
	r.SetName(name)
	if scope == corev1alpha1.ScopeNamespaced {
		r.SetNamespace(c.Namespace)
	}
	return r
}

// RepositoryText names a repository, as in "packagerepository shop/stable".
func RepositoryText(r corev1alpha1.GenericPackageRepository) string {
	kind := corev1alpha1.ScopeOf(r.GetNamespace()).Kind("PackageRepository")
	return objects.Key{Kind: strings.ToLower(kind), Namespace: r.GetNamespace(), Name: r.GetName()}.String()
}

// RepositoryFlags are the arguments that select a repository.
func RepositoryFlags(r corev1alpha1.GenericPackageRepository) string {
	text := strings.ToLower(corev1alpha1.ScopeOf(r.GetNamespace()).Kind("PackageRepository")) + "/" + r.GetName()
	if r.GetNamespace() != "" {
		text += " -n " + r.GetNamespace()
	}
	return text
}

// FindRepository reads a repository: without a kind, the PackageRepository or else the ClusterPackageRepository of that name.
func (c *Cluster) FindRepository(ctx context.Context, n RepositoryName) (corev1alpha1.GenericPackageRepository, error) {
	scopes := []corev1alpha1.Scope{n.Scope}
	if n.Scope == "" {
		scopes = []corev1alpha1.Scope{corev1alpha1.ScopeNamespaced, corev1alpha1.ScopeCluster}
	}
	for _, scope := range scopes {
		r := c.NewRepository(scope, n.Name)
		err := c.Get(ctx, client.ObjectKeyFromObject(r), r)
		switch {
		case err == nil:
			return r, nil
		case !apierrors.IsNotFound(err) || Unserved(err):
			return nil, c.Explain("cannot read "+RepositoryText(r), err)
		}
	}
	if len(scopes) == 1 {
		return nil, NotFoundError(fmt.Sprintf("there is no %s. See: kubectl package repo list", RepositoryText(c.NewRepository(n.Scope, n.Name))))
	}
	return nil, NotFoundError(fmt.Sprintf("there is neither a packagerepository %s in namespace %s nor a clusterpackagerepository of that name. See: kubectl package repo list -A",
		n.Name, c.Namespace))
}

// CompleteRepositories lists the readable names with a prefix.
func (c *Cluster) CompleteRepositories(ctx context.Context, begin string) (names []string) {
	for _, scope := range []corev1alpha1.Scope{corev1alpha1.ScopeNamespaced, corev1alpha1.ScopeCluster} {
		list := scope.NewPackageRepositoryList()
		if c.List(ctx, list, client.InNamespace(c.NewRepository(scope, "").GetNamespace())) != nil {
			continue
		}
		for _, r := range list.GenericRepositories() {
			if strings.HasPrefix(r.GetName(), begin) {
				names = append(names, r.GetName())
			}
		}
	}
	return names
}
