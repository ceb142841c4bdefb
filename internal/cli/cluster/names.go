package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/progress"
)

// Name is what a person calls a package: with its kind, or without.
type Name struct {
	// Scope is empty where no kind was given.
	Scope corev1alpha1.Scope
	Name  string
}

var kinds = map[string]corev1alpha1.Scope{
	"package": corev1alpha1.ScopeNamespaced, "packages": corev1alpha1.ScopeNamespaced, "pkg": corev1alpha1.ScopeNamespaced,
	"clusterpackage": corev1alpha1.ScopeCluster, "clusterpackages": corev1alpha1.ScopeCluster, "clpkg": corev1alpha1.ScopeCluster,
}

// ParseName reads NAME, package/NAME or clusterpackage/NAME, with the kinds in
// every form that kubectl takes.
func ParseName(arg string) (Name, error) {
	kind, name, slash := strings.Cut(arg, "/")
	if !slash {
		kind, name = "", arg
	}
	if name == "" || strings.Contains(name, "/") {
		return Name{}, fmt.Errorf("%q is not a name: write NAME, package/NAME or clusterpackage/NAME", arg)
	}
	if !slash {
		return Name{Name: name}, nil
	}
	scope, ok := kinds[strings.TrimSuffix(strings.ToLower(kind), "."+corev1alpha1.GroupName)]
	if !ok {
		return Name{}, fmt.Errorf("%q is not a kind of package: write package/%s or clusterpackage/%s", kind, name, name)
	}
	return Name{Scope: scope, Name: name}, nil
}

// Target is the package of that name in one scope.
func (c *Cluster) Target(scope corev1alpha1.Scope, name string) progress.Target {
	t := progress.Target{Scope: scope, Name: name}
	if scope == corev1alpha1.ScopeNamespaced {
		t.Namespace = c.Namespace
	}
	return t
}

// Read reads the package that a target names.
func (c *Cluster) Read(ctx context.Context, t progress.Target) (corev1alpha1.GenericPackage, error) {
	pkg := t.Scope.NewPackage()
	err := c.Get(ctx, client.ObjectKey{Namespace: t.Namespace, Name: t.Name}, pkg)
	return pkg, err
}

// ErrNoPackage is that there is no package of a name.
var ErrNoPackage = errors.New("there is no such package")

// noPackageError is ErrNoPackage in words.
type noPackageError string

func (e noPackageError) Error() string { return string(e) }

func (e noPackageError) Is(target error) bool { return target == ErrNoPackage }

// Find reads the package that a person means: without a kind, the Package of the
// namespace, or else the ClusterPackage. Where both exist, neither is meant.
func (c *Cluster) Find(ctx context.Context, n Name) (progress.Target, corev1alpha1.GenericPackage, error) {
	scopes := []corev1alpha1.Scope{n.Scope}
	if n.Scope == "" {
		scopes = []corev1alpha1.Scope{corev1alpha1.ScopeNamespaced, corev1alpha1.ScopeCluster}
	}
	var found []corev1alpha1.GenericPackage
	var targets []progress.Target
	var denied error
	for _, scope := range scopes {
		t := c.Target(scope, n.Name)
		pkg, err := c.Read(ctx, t)
		switch {
		case err == nil:
			found, targets = append(found, pkg), append(targets, t)
		case apierrors.IsNotFound(err) && !Unserved(err):
		case apierrors.IsForbidden(err) && len(scopes) > 1:
			// Who may read one kind only means that one.
			denied = c.Explain("cannot read "+t.String(), err)
		default:
			return t, nil, c.Explain("cannot read "+t.String(), err)
		}
	}
	switch {
	case len(found) == 1:
		return targets[0], found[0], nil
	case len(found) > 1:
		return progress.Target{}, nil, fmt.Errorf("%s is ambiguous: there are %s and %s. Write %s or %s", n.Name, targets[0], targets[1], targets[0].Arg(), targets[1].Arg())
	case denied != nil:
		return progress.Target{}, nil, denied
	case len(scopes) == 1:
		return progress.Target{}, nil, noPackageError(fmt.Sprintf("there is no %s", c.Target(n.Scope, n.Name)))
	}
	return progress.Target{}, nil, noPackageError(fmt.Sprintf("there is neither a package %s in namespace %s nor a clusterpackage of that name", n.Name, c.Namespace))
}

// Complete lists the names that begin as given, for the shell's completion. It
// leaves out what cannot be read.
func (c *Cluster) Complete(ctx context.Context, begin string) []string {
	var names []string
	for _, scope := range []corev1alpha1.Scope{corev1alpha1.ScopeNamespaced, corev1alpha1.ScopeCluster} {
		list := scope.NewPackageList()
		if err := c.List(ctx, list, client.InNamespace(c.Target(scope, "").Namespace)); err != nil {
			continue
		}
		for _, pkg := range list.GenericPackages() {
			names = append(names, pkg.GetName(), c.Target(scope, pkg.GetName()).Arg())
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, begin) })
	slices.Sort(names)
	return slices.Compact(names)
}
