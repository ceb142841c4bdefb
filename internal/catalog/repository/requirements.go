package repository

import (
	"fmt"
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/document"
	"lockstep.run/lockstep/internal/loader/manifest"
	"lockstep.run/lockstep/internal/loader/violation"
)

// provides checks the APIs that a version brings.
func (r *reporter) provides(field string, apis []corev1alpha1.ProvidedAPI) {
	if n := len(apis); n > limits.ProvidedAPIs {
		r.limit(field, "", "%d APIs; the limit is %d", n, limits.ProvidedAPIs)
		return
	}
	for i, api := range apis {
		manifest.CheckAPI(api, document.Index(field, i), violation.ReasonRepositoryInvalid, r.because)
	}
}

// dependencies checks the dependencies of a version of the package self.
func (r *reporter) dependencies(field, self string, provides []corev1alpha1.ProvidedAPI, list []corev1alpha1.Dependency) {
	check := &manifest.DependencyCheck{Self: self, Provides: provides, Invalid: violation.ReasonRepositoryInvalid, Fail: r.because}
	if !check.Whole(field, list) {
		return
	}
	for i := range list {
		d, at := &list[i], document.Index(field, i)
		if (d.Package == nil) == (d.API == nil) {
			r.fail(at, "Write one entry for each.", "exactly one of package and api is needed")
		}
		check.Check(at, d)
	}
}

// These are the dependencies of kapp-controller's Packages, as proposed.
type carvelDependency struct {
	Name       string                    `json:"name"`
	GVK        *corev1alpha1.ProvidedAPI `json:"gvk"`
	PackageRef *struct {
		RefName          string `json:"refName"`
		VersionSelection *struct {
			Constraints string                    `json:"constraints"`
			Prereleases *corev1alpha1.Prereleases `json:"prereleases"`
		} `json:"versionSelection"`
	} `json:"packageRef"`
}

// requirements reads the dependencies of a Package, the APIs it brings, and how often it can be
// installed.
func (r *reader) requirements(v *corev1alpha1.AvailableVersion, s *carvelSpec) {
	const onePerCluster, onePerNamespace, noRestrictions = "onePerCluster", "onePerNamespace", "noRestrictions"
	switch is := func(name string) bool { return strings.EqualFold(s.InstallationType, name) }; { // the proposal uses both spellings
	case is(onePerCluster):
		v.UniqueInScope = corev1alpha1.UniqueScopeCluster
	case is(onePerNamespace):
		v.UniqueInScope = corev1alpha1.UniqueScopeNamespace
	case is(""), is(noRestrictions):
	default:
		r.fail("spec.installationType", fmt.Sprintf("Supported: %s, %s, %s.", onePerCluster, onePerNamespace, noRestrictions), "Unsupported value: %q", s.InstallationType)
	}

	r.provides("spec.provides", s.Provides)
	v.Provides = s.Provides
	before := len(r.problems)
	for i := range s.Dependencies {
		if d, ok := r.carvelDependency(document.Index("spec.dependencies", i), &s.Dependencies[i]); ok {
			v.Dependencies = append(v.Dependencies, d)
		}
	}

	if len(r.problems) == before {
		r.dependencies("spec.dependencies", s.RefName, s.Provides, v.Dependencies)
	}
}

// carvelDependency converts a dependency of the proposal; ok is false if it is unusable.
func (r *reader) carvelDependency(field string, d *carvelDependency) (corev1alpha1.Dependency, bool) {
	out := corev1alpha1.Dependency{Name: d.Name}
	if (d.GVK == nil) == (d.PackageRef == nil) {
		r.fail(field, "Write one entry for each.", "exactly one of gvk and packageRef is needed")
		return out, false
	}
	if api := d.GVK; api != nil {
		out.API = &corev1alpha1.DependencyAPI{APIVersion: api.APIVersion, Kind: api.Kind}
		return out, true
	}

	out.Package = &corev1alpha1.DependencyPackage{Name: d.PackageRef.RefName}
	if s := d.PackageRef.VersionSelection; s != nil {
		out.Package.VersionSelection = corev1alpha1.VersionSelection{Version: s.Constraints, Prereleases: s.Prereleases}
	}

	return out, true
}

// bundle offers a version that consists only of its dependencies.
func (r *reader) bundle(v *corev1alpha1.AvailableVersion, name string) {
	files, err := loader.Plain(name, nil, loader.Declared{Dependencies: v.Dependencies, UniqueInScope: v.UniqueInScope})
	if err != nil {
		r.fail("spec.dependencies", "", "%v", err)
		return
	}
	v.Files = map[string]string{}
	for path, text := range files {
		v.Files[path] = string(text)
	}
}
