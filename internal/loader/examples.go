package loader

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/loader/violation"
)

// exampleName and exampleNamespace are the Package of a check without a test case.
const (
	exampleName      = "package"
	exampleNamespace = "package-namespace"
)

// exampleOptions returns options for a package outside of a cluster, as a Package or a
// ClusterPackage.
func exampleOptions(component string, cluster bool) Options {
	o := Options{Component: component, StaticImages: true, anyNamespace: true}
	o.Package.Metadata.Name = exampleName
	if !cluster {
		o.Package.Metadata.Namespace = exampleNamespace
	}
	o.Package.Image = StaticImage
	return o
}

// withTestCase returns the options for a test case of a manifest. The package of a test case only
// has values for templates. It does not determine the installation: real test cases of
// ClusterPackages have a namespace, and some have no name.
func (o Options) withTestCase(tc *manifestsv1alpha1.PackageManifestTestCaseTemplate) Options {
	o.Package, o.seen = tc.Context.Package, &tc.Context.Package
	o.Package.Metadata.Name = cmp.Or(o.Package.Metadata.Name, exampleName)
	o.Config = nil
	if tc.Context.Config != nil {
		o.Config = tc.Context.Config.Raw
	}
	o.Environment = nil
	env := tc.Context.Environment
	o.testEnvironment = &env
	// Fixtures of a test case must not depend on the digests in the lock.
	o.StaticImages = true
	return o
}

// withScopes returns options for the scope of a package that has only one.
func (o Options) withScopes(scopes []manifestsv1alpha1.PackageManifestScope) Options {
	namespaced := slices.Contains(scopes, manifestsv1alpha1.PackageManifestScopeNamespaced)
	cluster := slices.Contains(scopes, manifestsv1alpha1.PackageManifestScopeCluster)
	switch {
	case cluster && !namespaced:
		o.Package.Metadata.Namespace = ""
	case namespaced && !cluster && o.Package.Metadata.Namespace == "":
		o.Package.Metadata.Namespace, o.anyNamespace = exampleNamespace, true
	}
	return o
}

// testCaseOf returns the test case of this name, or the first one if the name is empty. It returns
// nil without an error if the manifest has no test cases and no name is given.
func testCaseOf(test *manifestsv1alpha1.PackageManifestTest, name string) (*manifestsv1alpha1.PackageManifestTestCaseTemplate, error) {
	names := make([]string, 0, len(test.Template))
	for i := range test.Template {
		if tc := &test.Template[i]; name == "" || tc.Name == name {
			return tc, nil
		}
		names = append(names, test.Template[i].Name)
	}
	if name == "" {
		return nil, nil
	}
	return nil, fmt.Errorf("the package has no test case %q. %s", name, violation.Suggest(name, names, "It has: "+strings.Join(names, ", ")+"."))
}
