package manifest

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/violation"
)

// Platforms are the platforms that a cluster can be. VersionedPlatforms also has the manager, whose
// version can be limited.
var (
	Platforms          = []string{string(manifestsv1alpha1.PlatformKubernetes), string(manifestsv1alpha1.PlatformOpenShift)}
	VersionedPlatforms = append(slices.Clone(Platforms), string(manifestsv1alpha1.PlatformLockstep))
)

// constraints checks the form of constraints. [Result.Unmet] and [Result.NotUnique] evaluate them.
func (c *checker) constraints(constraints []manifestsv1alpha1.PackageManifestConstraint) {
	if len(constraints) > limits.Expressions {
		c.add(violation.ReasonLimit, "spec.constraints", "", "%d constraints; the limit is %d", len(constraints), limits.Expressions)
		return
	}

	for i, constraint := range constraints {
		field := fmt.Sprintf("spec.constraints[%d]", i)
		for j, p := range constraint.Platform {
			c.oneOf(c.doubtful, fmt.Sprintf("%s.platform[%d]", field, j), string(p), Platforms...)
		}
		if pv := constraint.PlatformVersion; pv != nil {
			c.oneOf(c.doubtful, field+".platformVersion.name", string(pv.Name), VersionedPlatforms...)
			c.versionRange(field+".platformVersion.range", pv.Range)
		}
		if u := constraint.UniqueInScope; u != nil && u.Scope != "" {
			c.oneOf(c.invalid, field+".uniqueInScope.scope", string(u.Scope), string(corev1alpha1.UniqueScopeCluster), string(corev1alpha1.UniqueScopeNamespace))
		}
	}
}

// versionRange checks a range of versions and its length.
func (c *checker) versionRange(field, text string) {
	if len(text) > limits.TemplatePatternBytes {
		c.add(violation.ReasonLimit, field, "", "%d bytes; the limit is %d", len(text), limits.TemplatePatternBytes)
		return
	}
	if _, err := ParseRange(text); err != nil {
		c.invalid(field, `Write it as ">=1.29, <2".`, "%q is not a range of versions", text)
	}
}

// negation is a "!" that is meant as "!=".
var negation = regexp.MustCompile(`!([^=]|$)`)

// ParseRange parses a range of versions. It accepts "&&" for ",", "==" for "=", and "!" for "!=".
func ParseRange(text string) (*semver.Constraints, error) {
	if len(text) > limits.TemplatePatternBytes {
		return nil, fmt.Errorf("the range has %d bytes; the limit is %d", len(text), limits.TemplatePatternBytes)
	}
	text = strings.ReplaceAll(text, "&&", ",")
	text = strings.ReplaceAll(text, "==", "=")
	text = strings.ReplaceAll(text, "||", " || ") // otherwise it would not end a range with a hyphen
	return semver.NewConstraint(negation.ReplaceAllString(text, "!=$1"))
}

// Unmet returns the constraints that the cluster or the manager does not meet. A manager without a
// version meets all of them.
func (r *Result) Unmet(env *manifestsv1alpha1.PackageEnvironment, manager string) violation.Violations {
	var unmet violation.Violations
	for i, constraint := range r.Manifest.Spec.Constraints {
		field := fmt.Sprintf("spec.constraints[%d]", i)
		// Every cluster is Kubernetes.
		isPlatform := func(name manifestsv1alpha1.PlatformName) bool {
			return name == manifestsv1alpha1.PlatformKubernetes || name == manifestsv1alpha1.PlatformOpenShift && env.OpenShift != nil
		}
		if p := constraint.Platform; len(p) > 0 && !slices.ContainsFunc(p, isPlatform) {
			unmet = append(unmet, r.At(violation.ReasonConstraintUnmet, field+".platform").Because("", "the cluster is not one of %v", p))
		}
		pv := constraint.PlatformVersion
		if pv == nil {
			continue
		}
		version, applies := versionOf(env, manager, pv.Name)
		if !applies {
			continue
		}
		if details := unmetVersion(version, pv); details != "" {
			remedy := ""
			if pv.Name == manifestsv1alpha1.PlatformLockstep {
				remedy = "Install a version of Lockstep, or of the package, that fits."
			}
			unmet = append(unmet, r.At(violation.ReasonConstraintUnmet, field+".platformVersion.range").Because(remedy, "%s", details))
		}
	}

	return unmet
}

// versionOf returns the version of a platform, and whether constraints on it apply.
func versionOf(env *manifestsv1alpha1.PackageEnvironment, manager string, name manifestsv1alpha1.PlatformName) (version string, applies bool) {
	switch {
	case name == manifestsv1alpha1.PlatformLockstep:
		return manager, manager != ""
	case name == manifestsv1alpha1.PlatformOpenShift && env.OpenShift != nil:
		return env.OpenShift.Version, true
	}
	return env.Kubernetes.Version, name == manifestsv1alpha1.PlatformKubernetes
}

// unmetVersion returns why a version is not within a range, or an empty text.
func unmetVersion(text string, pv *manifestsv1alpha1.PackageManifestPlatformVersionConstraint) string {
	have, err := semver.NewVersion(text)
	if err != nil {
		return fmt.Sprintf("the version of %s, %q, is not a semantic version", pv.Name, text)
	}

	want, err := ParseRange(pv.Range)
	if err != nil {
		return fmt.Sprintf("%q is not a range of versions", pv.Range)
	}
	// Prerelease and build metadata are ignored: v1.29.4-gke.1 is 1.29.4.
	if !want.Check(semver.New(have.Major(), have.Minor(), have.Patch(), "", "")) {
		return fmt.Sprintf("%s %s is not within %s", pv.Name, text, pv.Range)
	}

	return ""
}

// Other is another installation of the same package; a ClusterPackage has no namespace.
type Other struct{ Namespace, Name string }

// Unique reports whether the manifest allows only one installation.
func (r *Result) Unique() bool {
	return slices.ContainsFunc(r.Manifest.Spec.Constraints, func(c manifestsv1alpha1.PackageManifestConstraint) bool { return c.UniqueInScope != nil })
}

// UniqueIn returns the scope that can have only one installation of a package by its constraints;
// empty if the number is not limited. installed is the scope of the installation.
func UniqueIn(constraints []manifestsv1alpha1.PackageManifestConstraint, installed corev1alpha1.Scope) (unique corev1alpha1.UniqueScope) {
	for _, c := range constraints {
		if c.UniqueInScope == nil {
			continue
		}
		if scopeOf(c.UniqueInScope, installed) == corev1alpha1.UniqueScopeCluster {
			return corev1alpha1.UniqueScopeCluster
		}
		unique = corev1alpha1.UniqueScopeNamespace
	}
	return unique
}

// scopeOf returns the scope of a constraint, by default the scope of the installation.
func scopeOf(u *manifestsv1alpha1.PackageManifestUniqueInScopeConstraint, installed corev1alpha1.Scope) corev1alpha1.UniqueScope {
	switch {
	case u.Scope != "":
		return u.Scope
	case installed == corev1alpha1.ScopeCluster:
		return corev1alpha1.UniqueScopeCluster
	}
	return corev1alpha1.UniqueScopeNamespace
}

// NotUnique returns the constraints that other installations violate; own can be among others. A
// Package is checked in its namespace, regardless of the scope in the constraint, and a
// ClusterPackage among ClusterPackages. Otherwise a user who can install Packages in one namespace
// could block others.
func (r *Result) NotUnique(own Other, others []Other) violation.Violations {
	var unmet violation.Violations
	others = slices.SortedFunc(slices.Values(others), func(a, b Other) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})

	within := "namespace"
	if own.Namespace == "" {
		within = "cluster as a ClusterPackage"
	}

	for i, constraint := range r.Manifest.Spec.Constraints {
		if constraint.UniqueInScope == nil {
			continue
		}
		at := slices.IndexFunc(others, func(o Other) bool { return o != own && o.Namespace == own.Namespace })
		if at < 0 {
			continue
		}
		unmet = append(unmet, r.At(violation.ReasonConstraintUnmet, fmt.Sprintf("spec.constraints[%d].uniqueInScope", i)).Because(
			fmt.Sprintf("Delete one of the two; %s stays as it is.", others[at]),
			"the package may be installed once in its %s, and %s is installed", within, others[at]))
	}

	return unmet
}

// String names the installation in messages.
func (o Other) String() string {
	return corev1alpha1.ScopeOf(o.Namespace).Kind("Package") + " " + strings.TrimPrefix(o.Namespace+"/"+o.Name, "/")
}
