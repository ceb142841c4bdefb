package manifest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/violation"
)

// Dependencies returns the dependencies of a manifest on packages and APIs, in their order.
func Dependencies(list []manifestsv1alpha1.PackageManifestDependency) []corev1alpha1.Dependency {
	var out []corev1alpha1.Dependency
	for i := range list {
		if inCluster(&list[i]) {
			out = append(out, dependencyOf(&list[i]))
		}
	}
	return out
}

// inCluster reports whether a dependency is resolved in the cluster instead of when the package is
// built.
func inCluster(d *manifestsv1alpha1.PackageManifestDependency) bool {
	return d.Package != nil || d.API != nil
}

// dependencyOf converts a dependency to the form of a Package's status. It copies lists, so that
// the manifest is not shared.
func dependencyOf(d *manifestsv1alpha1.PackageManifestDependency) corev1alpha1.Dependency {
	out := corev1alpha1.Dependency{Name: d.Name, Optional: d.Optional}
	if p := d.Package; p != nil {
		out.Package = &corev1alpha1.DependencyPackage{Name: p.Name, VersionSelection: corev1alpha1.VersionSelection{Version: p.Version}}
		if p.Prereleases != nil {
			out.Package.Prereleases = &corev1alpha1.Prereleases{Identifiers: slices.Clone(p.Prereleases.Identifiers)}
		}
	}
	if a := d.API; a != nil {
		out.API = &corev1alpha1.DependencyAPI{APIVersion: a.APIVersion, Kind: a.Kind, FieldPaths: slices.Clone(a.FieldPaths)}
	}
	return out
}

// Report reports a problem at a field.
type Report func(reason violation.Reason, field, remedy, format string, args ...any)

// DependencyCheck checks dependencies on packages and APIs, of a manifest or of a repository's
// offer.
type DependencyCheck struct {
	// Self is the name of the package with the dependencies, as other packages use it.
	Self string
	// Provides are APIs that the package brings itself.
	Provides []corev1alpha1.ProvidedAPI
	// Invalid is the reason of all problems except exceeded limits.
	Invalid violation.Reason
	Fail    Report

	names []string // so far, at most limits.Dependencies
}

// invalid reports a problem with the check's reason.
func (c *DependencyCheck) invalid(field, remedy, format string, args ...any) {
	c.Fail(c.Invalid, field, remedy, format, args...)
}

// Whole checks the number and the size of all dependencies, and reports whether they can be checked
// one by one.
func (c *DependencyCheck) Whole(field string, list []corev1alpha1.Dependency) bool {
	if n := len(list); n > limits.Dependencies {
		c.Fail(violation.ReasonLimit, field, "", "%d dependencies on packages and APIs; the limit is %d", n, limits.Dependencies)
		return false
	}
	if data, err := json.Marshal(list); err == nil && len(data) > limits.DependenciesBytes {
		c.Fail(violation.ReasonLimit, field, "Shorten ranges, or list fewer fieldPaths.",
			"the dependencies on packages and APIs have %d bytes as JSON; the limit is %d", len(data), limits.DependenciesBytes)
		return false
	}
	return true
}

// Check checks one dependency.
func (c *DependencyCheck) Check(field string, d *corev1alpha1.Dependency) {
	switch errs := validation.IsDNS1123Label(d.Name); {
	case d.Name == "":
		c.invalid(field+".name", "", "Required value")
	case len(errs) > 0:
		c.invalid(field+".name", "Write it as my-database.", "%q is not a valid dependency name: %s", d.Name, errs[0])
	case slices.Contains(c.names, d.Name):
		c.invalid(field+".name", "Choose another name.", "Duplicate value: %q", d.Name)
	}

	c.names = append(c.names, d.Name)
	if d.Package != nil {
		c.pkg(field+".package", d.Package)
	}
	if d.API != nil {
		c.api(field+".api", d.API)
	}
}

// pkg checks a dependency on a package.
func (c *DependencyCheck) pkg(field string, d *corev1alpha1.DependencyPackage) {
	switch errs := validation.IsDNS1123Subdomain(d.Name); {
	case d.Name == "":
		c.invalid(field+".name", "", "Required value")
	case len(errs) > 0:
		c.invalid(field+".name", "Write it as shop.example.com.", "%q is not a valid package name: %s", d.Name, errs[0])
	case len(d.Name) > limits.AvailableNameBytes:
		c.Fail(violation.ReasonLimit, field+".name", "", "the name has %d bytes; the limit is %d", len(d.Name), limits.AvailableNameBytes)
	case d.Name == c.Self:
		c.invalid(field+".name", "Remove it.", "the package cannot depend on itself")
	}

	c.versions(field+".version", d.Version)
	if d.Prereleases != nil {
		c.prereleases(field+".prereleases.identifiers", d.Prereleases.Identifiers)
	}
}

// versions checks a range and bounds its size, because the resolver compares it with every version
// of the package.
func (c *DependencyCheck) versions(field, text string) {
	if text == "" {
		return
	}
	if len(text) > limits.TemplatePatternBytes {
		c.Fail(violation.ReasonLimit, field, "", "%d bytes; the limit is %d", len(text), limits.TemplatePatternBytes)
		return
	}

	parsed, err := ParseRange(text)
	if err != nil {
		c.invalid(field, `Write it as ">=1.29, <2".`, "%q is not a range of versions", text)
		return
	}

	groups := strings.Split(parsed.String(), "||")
	terms := 0
	for _, group := range groups {
		terms += len(strings.Fields(group))
	}

	if len(groups) > limits.ConstraintGroups {
		c.Fail(violation.ReasonLimit, field, "", `the range has %d alternatives between "||"; the limit is %d`, len(groups), limits.ConstraintGroups)
	} else if terms > limits.ConstraintTerms {
		c.Fail(violation.ReasonLimit, field, "", "the range has %d comparisons; the limit is %d", terms, limits.ConstraintTerms)
	}
}

// prereleaseIdentifier matches one identifier of a semantic version.
var prereleaseIdentifier = regexp.MustCompile(`^[-0-9A-Za-z]{1,64}$`)

// prereleases checks the identifiers that a dependency accepts.
func (c *DependencyCheck) prereleases(field string, identifiers []string) {
	if n := len(identifiers); n > limits.PrereleaseNames {
		c.Fail(violation.ReasonLimit, field, "", "%d identifiers; the limit is %d", n, limits.PrereleaseNames)
		return
	}
	for i, identifier := range identifiers {
		if !prereleaseIdentifier.MatchString(identifier) {
			c.invalid(fmt.Sprintf("%s[%d]", field, i), "Write it as rc.", "%q is not a prerelease identifier", identifier)
		}
	}
}

// fieldPath matches a path in the form of kubectl explain, which ignores lists.
var fieldPath = regexp.MustCompile(`^[A-Za-z_$][-\w$]*(\.[A-Za-z_$][-\w$]*)*$`)

// api checks a dependency on an API.
func (c *DependencyCheck) api(field string, d *corev1alpha1.DependencyAPI) {
	api := corev1alpha1.ProvidedAPI{APIVersion: d.APIVersion, Kind: d.Kind}
	CheckAPI(api, field, c.Invalid, c.Fail)
	if slices.Contains(c.Provides, api) {
		c.invalid(field, "Remove it.", "the package brings %s %s itself", d.APIVersion, d.Kind)
	}
	if n := len(d.FieldPaths); n > limits.FieldPaths {
		c.Fail(violation.ReasonLimit, field+".fieldPaths", "", "%d paths; the limit is %d", n, limits.FieldPaths)
		return
	}

	for i, path := range d.FieldPaths {
		at := fmt.Sprintf("%s.fieldPaths[%d]", field, i)
		if len(path) > limits.PathBytes {
			c.Fail(violation.ReasonLimit, at, "", "%d bytes; the limit is %d", len(path), limits.PathBytes)
		} else if !fieldPath.MatchString(path) {
			c.invalid(at, "Write it as spec.privateKey.rotationPolicy, also through lists.", "%q is not a field path", path)
		}
	}
}

// CheckAPI checks an API that is required or provided.
func CheckAPI(api corev1alpha1.ProvidedAPI, field string, invalid violation.Reason, fail Report) {
	switch {
	case api.APIVersion == "":
		fail(invalid, field+".apiVersion", "", "Required value")
	case !isAPIVersion(api.APIVersion):
		fail(invalid, field+".apiVersion", "Write it as v1 or group/v1.", "%q is not a valid apiVersion", api.APIVersion)
	}
	switch errs := validation.IsDNS1035Label(strings.ToLower(api.Kind)); {
	case api.Kind == "":
		fail(invalid, field+".kind", "", "Required value")
	case len(errs) > 0:
		fail(invalid, field+".kind", "", "%q is not a valid kind: %s", api.Kind, errs[0])
	}
}

// isAPIVersion reports whether a text is a valid version, with or without a group.
func isAPIVersion(text string) bool {
	gv, err := schema.ParseGroupVersion(text)
	return err == nil && len(validation.IsDNS1035Label(gv.Version)) == 0 && (gv.Group == "" || len(validation.IsDNS1123Subdomain(gv.Group)) == 0)
}

// IsAPI reports whether apiVersion and kind are well-formed.
func IsAPI(api corev1alpha1.ProvidedAPI) bool {
	return isAPIVersion(api.APIVersion) && len(validation.IsDNS1035Label(strings.ToLower(api.Kind))) == 0
}
