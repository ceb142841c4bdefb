package packages

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/resolver"
	"lockstep.run/lockstep/internal/testing/conformance"
)

// TestConformance runs the rows of internal/resolver/testdata/conformance that delete packages.
func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Suite{
		Dir:        "../../resolver/testdata/conformance",
		Operations: map[string]func(t *testing.T, r conformance.Row) (string, conformance.NotApplicable){"delete": deleted},
	}.Run(t)
}

// deleted: a package is deleted, with others that need what it needs.
func deleted(t *testing.T, r conformance.Row) (string, conformance.NotApplicable) {
	var in struct {
		Package string
		// Dependencies that were generated, with those who need them.
		Dependencies   map[string][]string
		DeletionPolicy corev1alpha1.DeletionPolicy
	}
	var want struct {
		Deleted, Held []string
		RequiredBy    map[string][]string
	}
	if json.Unmarshal(r.Input, &in) != nil || json.Unmarshal(r.Expected, &want) != nil || in.Package == "" || len(in.Dependencies) == 0 {
		return "", "the row has another shape than the README of internal/resolver/testdata/conformance describes"
	}
	c := newCluster(t)
	for name, dependents := range in.Dependencies {
		c.generate(name, dependents...)
	}
	var d conformance.Differences
	names := []string{}
	for _, i := range holders(c.survey(c.t.Context(), "team").installed, resolver.Instance{Namespace: "team", Name: in.Package}) {
		names = append(names, i.Name)
	}
	d.Unless(slices.Equal(names, want.Held), "held by %v", names)
	if len(names) == 0 {
		c.teardown(in.Package, in.DeletionPolicy)
	}
	gone := []string{}
	for name := range in.Dependencies {
		pkg := c.get(name)
		if pkg == nil {
			gone = append(gone, name)
			continue
		}
		if by, stated := want.RequiredBy[name]; stated {
			d.Unless(slices.Equal(requiredBy(pkg), by), "%s is required by %v", name, requiredBy(pkg))
		}
	}
	slices.Sort(gone)
	d.Unless(want.Deleted == nil || slices.Equal(gone, want.Deleted), "deleted %v", gone)
	return d.String(), ""
}

// cluster is an API server with Packages in the namespace team, and a controller whose cache has all of them.
type cluster struct {
	*Reconciler
	t      *testing.T
	server client.Client
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	return newClusterWith(t, func(*fake.ClientBuilder) {})
}

func newClusterWith(t *testing.T, change func(*fake.ClientBuilder)) *cluster {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := corev1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).
		WithIndex(&corev1alpha1.Package{}, dependencyIndex, satisfiers).WithIndex(&corev1alpha1.ClusterPackage{}, dependencyIndex, satisfiers).
		WithIndex(&corev1alpha1.AvailablePackage{}, availableIndex, offered).WithIndex(&corev1alpha1.ClusterAvailablePackage{}, availableIndex, offered)
	change(builder)
	c := &cluster{t: t, server: builder.Build()}
	c.Reconciler, _ = newReconciler(t)
	c.Client = c.server
	return c
}

func (c *cluster) get(name string) *corev1alpha1.Package {
	pkg := &corev1alpha1.Package{}
	if err := c.server.Get(c.t.Context(), client.ObjectKey{Namespace: "team", Name: name}, pkg); client.IgnoreNotFound(err) != nil {
		c.t.Fatal(err)
	} else if err != nil {
		return nil
	}
	return pkg
}

// generate creates a package that was installed for others, which exist afterwards, too, and record it.
func (c *cluster) generate(name string, dependents ...string) {
	c.t.Helper()
	pkg := &corev1alpha1.Package{}
	pkg.Namespace, pkg.Name = "team", name
	pkg.Labels = map[string]string{corev1alpha1.GeneratedLabel: "true"}
	pkg.Spec.PackageRef = &corev1alpha1.PackageReference{Name: name}
	pkg.Status.Resolved = &corev1alpha1.ResolvedPackage{PackageName: name}
	entry := corev1alpha1.DependencyStatus{PackageRef: resolver.Instance{Namespace: "team", Name: name}.Reference()}
	entry.Name, entry.Package = name[strings.LastIndex(name, ".")+1:], &corev1alpha1.DependencyPackage{Name: name}
	for _, by := range dependents {
		require(pkg, []resolver.Need{{Dependent: resolver.Instance{Namespace: "team", Name: by}, Dependency: entry.Dependency}}, nil)
		if parent := c.get(by); parent != nil {
			parent.Status.Dependencies = append(parent.Status.Dependencies, entry)
			c.must(c.server.Update(c.t.Context(), parent))
			continue
		}
		parent := newPackage()
		parent.Name, parent.UID, parent.ResourceVersion, parent.Status.Dependencies = by, "", "", []corev1alpha1.DependencyStatus{entry}
		c.must(c.server.Create(c.t.Context(), parent))
	}
	c.must(c.server.Create(c.t.Context(), pkg))
}

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// teardown ends that of a package whose own objects are gone.
func (c *cluster) teardown(name string, policy corev1alpha1.DeletionPolicy) {
	c.t.Helper()
	pkg := c.get(name)
	pkg.Spec.Dependencies = &corev1alpha1.PackageDependencies{DeletionPolicy: policy}
	_, err := c.of(pkg).releaseAll(c.t.Context())
	c.must(err)
}

// requiredBy returns the names in the labels and in the annotation of a package, where both are the same.
func requiredBy(pkg *corev1alpha1.Package) []string {
	names := []string{}
	for label := range pkg.Labels {
		if isRequiredBy(label) {
			names = append(names, label[len(corev1alpha1.RequiredByLabelPrefix):])
		}
	}
	slices.Sort(names)
	ranges := []string{}
	ranges = slices.AppendSeq(ranges, maps.Keys(marksOf(pkg)))
	slices.Sort(ranges)
	if !slices.Equal(names, ranges) {
		return []string{"labels", "and", "annotation", "differ"}
	}
	return names
}
