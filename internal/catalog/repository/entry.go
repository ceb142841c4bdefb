package repository

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/google/go-containerregistry/pkg/name"
	"k8s.io/apimachinery/pkg/util/validation"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/document"
	"lockstep.run/lockstep/internal/loader/manifest"
)

// hexDigest matches a digest with or without its algorithm.
var hexDigest = regexp.MustCompile(`^(sha256:)?[0-9a-f]{64}$`)

// repository reads the document that names a repository.
func (r *reporter) repository() (name string, ok bool) {
	var doc manifestsv1alpha1.Repository
	if !r.decode(&doc) {
		return "", false
	}
	if problems := validation.IsDNS1123Subdomain(doc.Name); len(problems) > 0 {
		r.fail("metadata.name", "", "%q is not a valid name: %s", doc.Name, problems[0])
		return "", false
	}
	return doc.Name, true
}

// entry reads as much as possible of a RepositoryEntry.
func (r *reporter) entry() (Entry, bool) {
	var doc manifestsv1alpha1.RepositoryEntry
	if !r.decode(&doc) {
		return Entry{}, false
	}

	before := len(r.problems)
	d := &doc.Data
	e := Entry{RepositoryEntryData: *d}
	e.RepositoryEntryData.Versions = nil // parsed below
	if problems := validation.IsDNS1123Subdomain(e.Name); len(problems) > 0 {
		r.fail("data.name", "", "%q is not a valid package name: %s", e.Name, problems[0])
	}
	if _, err := name.NewRepository(e.Image); err != nil {
		r.fail("data.image", "Write it as host/path, without tag and digest.", "%q is not an image repository", e.Image)
	}
	if !hexDigest.MatchString(e.Digest) {
		r.fail("data.digest", "", "%q is not a digest", e.Digest)
	}

	e.Digest = digestPrefix + e.hex()
	if doc.Name != e.name() {
		r.fail("metadata.name", "", "it has to be the name of the package and the digest: %q", e.name())
	}

	e.Versions = r.versions(d.Versions)
	r.constraints(d.Constraints)
	// A catalogue shows the other fields.
	if d.PackageName != "" {
		if problems := validation.IsDNS1123Subdomain(d.PackageName); len(problems) > 0 {
			r.fail("data.packageName", "Write it as shop.example.com.", "%q is not a valid package name: %s", d.PackageName, problems[0])
		}
	}

	r.revision("data.revision", d.Revision)
	r.provides("data.provides", d.Provides)
	r.dependencies("data.dependencies", cmp.Or(d.PackageName, d.Name), d.Provides, d.Dependencies)
	for i, s := range d.Scopes {
		if s != manifestsv1alpha1.PackageManifestScopeCluster && s != manifestsv1alpha1.PackageManifestScopeNamespaced {
			r.fail(document.Index("data.scopes", i), "Supported: Cluster, Namespaced.", "%q is not a scope", s)
		}
	}
	return e, len(r.problems) == before
}

// versions parses the versions of an entry.
func (r *reporter) versions(texts []string) []*semver.Version {
	switch {
	case len(texts) == 0:
		r.fail("data.versions", "List at least one.", "Required value")
	case len(texts) > limits.RepositoryVersions:
		r.fail("data.versions", "", "%d versions; the limit is %d", len(texts), limits.RepositoryVersions)
		return nil
	}

	var out []*semver.Version
	for i, text := range texts {
		v, err := versions.ParseVersion(text)
		if err != nil {
			r.fail(document.Index("data.versions", i), "", "%v", err)
			continue
		}
		out = append(out, v)
	}

	return out
}

// constraints checks the constraints of an entry by the rules for manifests.
func (r *reporter) constraints(constraints []manifestsv1alpha1.PackageManifestConstraint) {
	if n := len(constraints); n > limits.Expressions {
		r.fail("data.constraints", "", "%d constraints; the limit is %d", n, limits.Expressions)
		return
	}

	for i, c := range constraints {
		if u := c.UniqueInScope; u != nil && !slices.Contains([]corev1alpha1.UniqueScope{"", corev1alpha1.UniqueScopeCluster, corev1alpha1.UniqueScopeNamespace}, u.Scope) {
			r.fail(document.Index("data.constraints", i)+".uniqueInScope.scope", "Supported: Cluster, Namespace.", "%q is not a scope", u.Scope)
		}
		for _, name := range c.Platform {
			r.platform(i, name, manifest.Platforms)
		}
		if pv := c.PlatformVersion; pv != nil {
			r.platform(i, pv.Name, manifest.VersionedPlatforms)
			if _, err := manifest.ParseRange(pv.Range); err != nil {
				r.fail(document.Index("data.constraints", i)+".platformVersion.range", `Write it as ">=1.29, <2".`, "%q is not a range of versions", pv.Range)
			}
		}
	}
}

// platform reports an unknown platform, which no cluster would ever meet.
func (r *reporter) platform(constraint int, name manifestsv1alpha1.PlatformName, known []string) {
	if !slices.Contains(known, string(name)) {
		r.fail(document.Index("data.constraints", constraint), "Supported: "+strings.Join(known, ", ")+".", "%q is not a platform", name)
	}
}
