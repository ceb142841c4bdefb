package repository

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/loader/manifest"
)

const (
	packaging  = "data.packaging.carvel.dev/v1alpha1"
	kindOfMeta = "PackageMetadata"
)

// kinds are the documents of a repository by apiVersion and kind.
var kinds = map[string]func(*reader){
	manifestsv1alpha1.GroupVersion.String() + " " + manifestsv1alpha1.KindRepository:      func(r *reader) { r.repository() },
	manifestsv1alpha1.GroupVersion.String() + " " + manifestsv1alpha1.KindRepositoryEntry: (*reader).repositoryEntry,
	packaging + " Package":       (*reader).carvelPackage,
	packaging + " " + kindOfMeta: (*reader).carvelMetadata,
}

// repositoryEntry offers the versions of a package image.
func (r *reader) repositoryEntry() {
	e, ok := r.entry()
	if !ok {
		return
	}

	r.object = "entry " + e.name()
	var scopes []corev1alpha1.Scope // that a version can be installed in
	for _, s := range scopesOf(e.Scopes) {
		scopes = append(scopes, corev1alpha1.Scope(s))
	}
	// If a constraint does not name its scope, it is the scope of a Package, provided that a Package
	// can install the version.
	installed := corev1alpha1.ScopeNamespaced
	if slices.Equal(scopes, []corev1alpha1.Scope{corev1alpha1.ScopeCluster}) {
		installed = corev1alpha1.ScopeCluster
	}

	v := corev1alpha1.AvailableVersion{
		Image: e.Image + "@" + e.Digest, Revision: e.Revision, Retracted: e.Retracted, Constraints: constraintsOf(e.Constraints),
		Release: e.Release, Provides: e.Provides, Dependencies: e.Dependencies,
		UniqueInScope: manifest.UniqueIn(e.Constraints, installed), Scopes: scopes, ConfigSchema: r.schema(e.ConfigSchema),
	}
	name, field := cmp.Or(e.PackageName, e.Name), "data.name"
	if e.PackageName != "" {
		field = "data.packageName"
	}
	if !r.name(field, name) {
		return
	}
	if e.ConfigSchema != nil && !bytes.HasPrefix(e.ConfigSchema.Raw, []byte("{")) {
		r.fail("data.configSchema", "Write it as in the manifest of the package.", "the schema is not a mapping")
		return
	}
	if e.Display != nil {
		r.display(name, &e)
	}

	r.offer(name, v, e.Versions...)
}

// display keeps the description of the highest version.
func (r *reader) display(name string, e *Entry) {
	d, _ := r.sized("data.display", e.Display)
	order := e.Versions[0]
	for _, v := range e.Versions[1:] {
		if versions.Compare(v, order) > 0 {
			order = v
		}
	}
	if p := r.pkg(name); d != nil && (p.displayOf == nil || versions.Compare(order, p.displayOf) > 0) {
		p.display, p.displayOf = d, order
	}
}

// constraintsOf returns the requirements for a cluster. Uniqueness is checked at installation.
func constraintsOf(constraints []manifestsv1alpha1.PackageManifestConstraint) []corev1alpha1.AvailableConstraint {
	var out []corev1alpha1.AvailableConstraint
	for _, c := range constraints {
		var a corev1alpha1.AvailableConstraint
		for _, p := range c.Platform {
			a.Platforms = append(a.Platforms, string(p))
		}
		if pv := c.PlatformVersion; pv != nil {
			a.Platform, a.Range = string(pv.Name), strings.ReplaceAll(pv.Range, "&&", ",")
		}
		if a.Platforms != nil || a.Platform != "" {
			out = append(out, a)
		}
	}

	return out
}
