package manifest

import (
	"cmp"
	"fmt"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/violation"
)

// dependencies checks all dependencies. Those on packages and APIs have the same rules as in the
// offers of repositories, so DependencyCheck has them.
func (c *checker) dependencies(spec *manifestsv1alpha1.PackageManifestSpec) {
	check := &DependencyCheck{Self: cmp.Or(spec.PackageName, c.r.Manifest.Name), Invalid: violation.ReasonManifestInvalid, Fail: c.add}
	for _, api := range spec.Provides {
		check.Provides = append(check.Provides, corev1alpha1.ProvidedAPI(api))
	}

	if !check.Whole("spec.dependencies", Dependencies(spec.Dependencies)) {
		return
	}

	for i := range spec.Dependencies {
		d, field := &spec.Dependencies[i], fmt.Sprintf("spec.dependencies[%d]", i)
		set := 0
		for _, is := range []bool{d.Image != nil, d.Package != nil, d.API != nil} {
			if is {
				set++
			}
		}
		if set != 1 && (c.r.Strict || set > 1) {
			c.invalid(field, "Write one entry for each.", "%d of image, package and api are set; exactly one is needed", set)
		}
		if d.Image != nil {
			c.imageDependency(field+".image", d.Image)
		}
		if inCluster(d) {
			converted := dependencyOf(d)
			check.Check(field, &converted)
		}
	}
}

// imageDependency checks a dependency that the lock resolves.
func (c *checker) imageDependency(field string, d *manifestsv1alpha1.PackageManifestDependencyImage) {
	for key, value := range map[string]string{".name": d.Name, ".package": d.Package, ".range": d.Range} {
		if value == "" {
			c.doubtful(field+key, "", "Required value")
		} else if key == ".range" {
			c.versionRange(field+key, value)
		} else {
			c.required(field+key, value)
		}
	}
}

// provides checks the number, the form and the uniqueness of declared APIs.
func (c *checker) provides(apis []manifestsv1alpha1.PackageManifestAPI) {
	if len(apis) > limits.ProvidedAPIs {
		c.add(violation.ReasonLimit, "spec.provides", "", "%d APIs; the limit is %d", len(apis), limits.ProvidedAPIs)
		return
	}
	seen := map[string]bool{}
	for i, api := range apis {
		field := fmt.Sprintf("spec.provides[%d]", i)
		CheckAPI(corev1alpha1.ProvidedAPI(api), field, violation.ReasonManifestInvalid, c.add)
		c.unique(seen, field, api.APIVersion+" "+api.Kind)
	}
}
