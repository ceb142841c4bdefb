package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/progress"
)

// Name of a package, deployment or repository in an argument.
type Name struct {
	// Scope is empty if the argument has no kind.
	Scope corev1alpha1.Scope
	Name  string
	// Deployment is set for an ObjectDeployment or ClusterObjectDeployment.
	Deployment bool
}

// kinds by the names that kubectl accepts.
var kinds = map[string]Name{
	"package": {Scope: corev1alpha1.ScopeNamespaced}, "packages": {Scope: corev1alpha1.ScopeNamespaced}, "pkg": {Scope: corev1alpha1.ScopeNamespaced},
	"clusterpackage": {Scope: corev1alpha1.ScopeCluster}, "clusterpackages": {Scope: corev1alpha1.ScopeCluster}, "clpkg": {Scope: corev1alpha1.ScopeCluster},
	"objectdeployment": namespacedDeployment, "objectdeployments": namespacedDeployment, "objdeploy": namespacedDeployment, "od": namespacedDeployment,
	"clusterobjectdeployment": clusterDeployment, "clusterobjectdeployments": clusterDeployment, "clobjdeploy": clusterDeployment, "cod": clusterDeployment,
}

var (
	namespacedDeployment = Name{Scope: corev1alpha1.ScopeNamespaced, Deployment: true}
	clusterDeployment    = Name{Scope: corev1alpha1.ScopeCluster, Deployment: true}
)

// ParseName parses NAME, package/NAME or clusterpackage/NAME.
func ParseName(arg string) (Name, error) {
	kind, name, slash := strings.Cut(arg, "/")
	if !slash {
		kind, name = "", arg
	}
	if name == "" || strings.Contains(name, "/") {
		return Name{}, fmt.Errorf("%q is not a name: write NAME, package/NAME or clusterpackage/NAME", arg)
	}

	// The group is optional, and kubectl accepts it as a suffix.
	n, known := kinds[strings.TrimSuffix(strings.ToLower(kind), "."+corev1alpha1.GroupName)]
	if slash && (!known || n.Deployment) {
		return Name{}, fmt.Errorf("%q is not a kind of package: write package/%s or clusterpackage/%s", kind, name, name)
	}
	n.Name = name
	return n, nil
}

// ParseResource parses NAME, KIND/NAME or KIND NAME of a package or deployment.
func ParseResource(args []string) (Name, error) {
	arg := strings.Join(args, "/")
	kind, name, slash := strings.Cut(arg, "/")
	n := kinds[strings.TrimSuffix(strings.ToLower(kind), "."+corev1alpha1.GroupName)]

	if n.Name = name; n.Deployment && name != "" && !strings.Contains(name, "/") {
		return n, nil
	}
	n, err := ParseName(arg)
	if err != nil && slash {
		return Name{}, fmt.Errorf("%q is not the name of an object with revisions: write package/NAME, clusterpackage/NAME, objectdeployment/NAME or clusterobjectdeployment/NAME", arg)
	}

	return n, err
}

// Scoped adds the scope of --cluster to the name of arg.
func (n Name) Scoped(arg string, cluster bool) (Name, error) {
	if cluster && n.Scope == corev1alpha1.ScopeNamespaced {
		return n, fmt.Errorf("%s and --cluster contradict each other", arg)
	}
	if cluster {
		n.Scope = corev1alpha1.ScopeCluster
	}
	return n, nil
}

// Target is the package of this name in one scope.
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

// NotFoundError is returned for a package that does not exist.
type NotFoundError string

// Error implements error.
func (e NotFoundError) Error() string { return string(e) }

// Find reads a package. Without a kind, it is the Package or else the ClusterPackage of that name.
// If both exist, it is the Package if a flag names its namespace.
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
			// A user who may read only one kind means that kind.
			denied = c.Explain("cannot read "+t.String(), err)
		default:
			return t, nil, c.Explain("cannot read "+t.String(), err)
		}
	}

	switch {
	case len(found) == 1, len(found) > 1 && c.NamespaceGiven:
		return targets[0], found[0], nil
	case len(found) > 1:
		// The command never guesses between two packages of one name, because it might delete the
		// wrong one.
		return progress.Target{}, nil, fmt.Errorf("%s is ambiguous: there are %s and %s. Write %s or %s, or name the namespace with -n", n.Name, targets[0], targets[1], targets[0].Arg(), targets[1].Arg())
	case denied != nil:
		return progress.Target{}, nil, denied
	case len(scopes) == 1:
		return progress.Target{}, nil, NotFoundError(fmt.Sprintf("there is no %s", c.Target(n.Scope, n.Name)))
	}

	return progress.Target{}, nil, NotFoundError(fmt.Sprintf("there is neither a package %s in namespace %s nor a clusterpackage of that name", n.Name, c.Namespace))
}

// Snapshot reads a package with its deployment and newest revision, which are nil if the user may
// not read them.
func (c *Cluster) Snapshot(ctx context.Context, t progress.Target, pkg corev1alpha1.GenericPackage) (progress.Snapshot, corev1alpha1.GenericObjectDeployment, error) {
	snap := progress.Snapshot{Target: t, Package: pkg}
	dep := t.Scope.NewObjectDeployment()
	err := c.Get(ctx, client.ObjectKey{Namespace: t.Namespace, Name: t.Name}, dep)
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsForbidden(err):
		dep = nil
	case err != nil:
		return snap, nil, c.Explain("cannot read the deployment of "+t.String(), err)
	}
	// The API server refuses such a selector, and the manager such a package.
	if len(validation.IsValidLabelValue(t.Name)) > 0 {
		return snap, dep, nil
	}

	list := t.Scope.NewObjectSetList()
	own := client.MatchingLabelsSelector{Selector: labels.SelectorFromSet(labels.Set{corev1alpha1.PackageLabel: t.Name})}
	err = c.List(ctx, list, client.InNamespace(t.Namespace), own)
	if err != nil && !apierrors.IsForbidden(err) {
		return snap, nil, c.Explain("cannot read the revisions of "+t.String(), err)
	}
	snap.Set = newest(list.GenericObjectSets())

	return snap, dep, nil
}

// Complete lists the readable names with a prefix.
func (c *Cluster) Complete(ctx context.Context, begin string) []string {
	var names []string
	for _, scope := range []corev1alpha1.Scope{corev1alpha1.ScopeNamespaced, corev1alpha1.ScopeCluster} {
		list := scope.NewPackageList()
		// A completion must not print errors, so an unreadable kind is left out.
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
