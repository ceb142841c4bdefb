package cluster

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/offers"
	"lockstep.run/lockstep/internal/catalog/repository"
)

// availablePage is the number of AvailablePackages in one response.
const availablePage = 50 // each of up to 512 KiB

// Catalogue reads the offers of repositories to the packages of one namespace, or of the cluster.
// It reads each package once.
type Catalogue struct {
	cluster   *Cluster
	namespace string
	// read has the specs by package: of the namespace's own repositories, and of the cluster's.
	read map[string][2][]corev1alpha1.AvailablePackageSpec
	// hidden are the cluster repositories that do not serve the namespace; nil until they are read.
	hidden map[string]bool

	// all are the names of all packages of the catalogue, once it was read.
	all []string
}

// Catalogue returns the catalogue of a namespace, or of ClusterPackages if namespace is empty.
func (c *Cluster) Catalogue(namespace string) *Catalogue {
	return &Catalogue{cluster: c, namespace: namespace, read: map[string][2][]corev1alpha1.AvailablePackageSpec{}}
}

// All reads the whole catalogue once, and returns the sorted names of its packages.
func (c *Catalogue) All(ctx context.Context) ([]string, error) {
	if c.all != nil {
		return c.all, nil
	}
	whole, err := c.each(ctx, corev1alpha1.ScopeCluster)
	if err != nil {
		return nil, err
	}

	local := map[string][]corev1alpha1.AvailablePackageSpec{}
	if c.namespace != "" {
		if local, err = c.each(ctx, corev1alpha1.ScopeNamespaced); err != nil {
			return nil, err
		}
	}

	if err := c.readHidden(ctx); err != nil {
		return nil, err
	}

	names := []string{}
	for _, of := range []map[string][]corev1alpha1.AvailablePackageSpec{local, whole} {
		for name := range of {
			c.read[name] = [2][]corev1alpha1.AvailablePackageSpec{local[name], whole[name]}
			names = append(names, name)
		}
	}

	slices.Sort(names)
	c.all = slices.Compact(names)
	return c.all, nil
}

// each reads the specs of a scope, by package.
func (c *Catalogue) each(ctx context.Context, scope corev1alpha1.Scope) (map[string][]corev1alpha1.AvailablePackageSpec, error) {
	found := map[string][]corev1alpha1.AvailablePackageSpec{}
	err := EachPage(ctx, c.cluster, c.namespaceOf(scope), availablePage, scope.NewAvailablePackageList, func(page corev1alpha1.GenericAvailablePackageList) error {
		for _, a := range page.GenericAvailablePackages() {
			spec := a.AvailableSpec()
			found[spec.PackageName] = append(found[spec.PackageName], *spec)
		}
		return nil
	})

	return found, c.cluster.Explain("cannot read the offers of repositories", err)
}

// Of returns the versions of a package, lowest first, and its display texts. It returns none if no
// repository offers the package.
func (c *Catalogue) Of(ctx context.Context, name string) ([]offers.Offered, *corev1alpha1.PackageDisplay, error) {
	specs, known := c.read[name]
	// A ClusterPackage has no namespace, and sees only the repositories of the cluster.
	if !known {
		for i, scope := range c.scopes() {
			var err error
			if specs[i], err = c.cluster.parts(ctx, scope, c.namespaceOf(scope), name); err != nil {
				return nil, nil, err
			}
		}
		c.read[name] = specs
	}

	if err := c.readHidden(ctx); err != nil {
		return nil, nil, err
	}
	found := offers.Candidates(name, specs[0], specs[1], func(repository string) bool { return !c.hidden[repository] })
	// The namespace's repositories come first.
	for _, spec := range slices.Concat(specs[0], specs[1]) {
		if spec.Display != nil {
			return found, spec.Display, nil
		}
	}
	return found, nil, nil
}

// Names returns the sorted names of the packages with a version that the namespace sees.
func (c *Catalogue) Names(ctx context.Context) ([]string, error) {
	all, err := c.All(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, name := range all {
		offered, _, err := c.Of(ctx, name)
		if err != nil {
			return nil, err
		}
		if len(offered) > 0 {
			names = append(names, name)
		}
	}

	return names, nil
}

// scopes are the scopes of repositories in the order of precedence: the namespace's own ones win.
func (c *Catalogue) scopes() [2]corev1alpha1.Scope {
	return [2]corev1alpha1.Scope{corev1alpha1.ScopeNamespaced, corev1alpha1.ScopeCluster}
}

// namespaceOf returns the namespace of the objects of a scope.
func (c *Catalogue) namespaceOf(scope corev1alpha1.Scope) string {
	if scope == corev1alpha1.ScopeNamespaced {
		return c.namespace
	}
	return ""
}

// parts reads the objects of one package. A large package has several.
func (c *Cluster) parts(ctx context.Context, scope corev1alpha1.Scope, namespace, name string) ([]corev1alpha1.AvailablePackageSpec, error) {
	var found []corev1alpha1.AvailablePackageSpec
	if scope == corev1alpha1.ScopeNamespaced && namespace == "" {
		return nil, nil
	}

	for part := int32(0); ; part++ {
		a := scope.NewAvailablePackage()
		err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: repository.ObjectName(name, part)}, a)
		switch {
		// A missing part is the end of the package.
		case apierrors.IsNotFound(err) && !Unserved(err):
			return found, nil
		case err != nil:
			return nil, c.Explain("cannot read the offers of repositories for "+name, err)
		// The name belongs to another package, whose own name looks like a further part.
		case a.AvailableSpec().PackageName != name:
			return found, nil
		}

		found = append(found, *a.AvailableSpec())
	}
}

// readHidden finds the cluster repositories that do not serve the namespace. It finds none if the
// user may not read them.
func (c *Catalogue) readHidden(ctx context.Context) error {
	if c.hidden != nil {
		return nil
	}
	// An empty map means that the repositories were read.
	c.hidden = map[string]bool{}
	if c.namespace == "" {
		return nil
	}
	list := corev1alpha1.ScopeCluster.NewPackageRepositoryList()
	err := c.cluster.List(ctx, list)
	if err != nil && !apierrors.IsForbidden(err) {
		return c.cluster.Explain("cannot read the repositories of the cluster", err)
	}

	var namespace *metav1.PartialObjectMetadata
	for _, r := range list.GenericRepositories() {
		if r.RepositorySpec().NamespaceSelector == nil {
			continue
		}
		// Only a selector needs the labels of the namespace.
		if namespace == nil {
			namespace = &metav1.PartialObjectMetadata{}
			namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
			err := c.cluster.Get(ctx, client.ObjectKey{Name: c.namespace}, namespace)
			// Without the labels, no repository can be excluded. The manager still excludes it.
			if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
				return nil
			}
			if err != nil {
				return c.cluster.Explain(fmt.Sprintf("cannot read the namespace %s", c.namespace), err)
			}
		}

		c.hidden[r.GetName()] = !offers.Visible(r.RepositorySpec(), namespace.GetLabels())
	}

	return nil
}
