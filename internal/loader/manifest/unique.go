package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/loader/violation"
)

// Other is another installation of the same package; a ClusterPackage has no namespace.
type Other struct{ Namespace, Name string }

// Unique reports whether the manifest allows one installation only.
func (r *Result) Unique() bool {
	return slices.ContainsFunc(r.Manifest.Spec.Constraints, func(c manifestsv1alpha1.PackageManifestConstraint) bool { return c.UniqueInScope != nil })
}

// NotUnique returns the constraints that other installations violate; own may be among
// them. Namespace as the scope of a ClusterPackage means among ClusterPackages.
func (r *Result) NotUnique(own Other, others []Other) violation.Violations {
	var unmet violation.Violations
	others = slices.SortedFunc(slices.Values(others), func(a, b Other) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for i, constraint := range r.Manifest.Spec.Constraints {
		if constraint.UniqueInScope == nil {
			continue
		}
		scope := constraint.UniqueInScope.Scope
		if scope == "" && own.Namespace == "" {
			scope = manifestsv1alpha1.UniqueScopeCluster
		}
		at := slices.IndexFunc(others, func(o Other) bool {
			return o != own && (scope == manifestsv1alpha1.UniqueScopeCluster || o.Namespace == own.Namespace)
		})
		if at < 0 {
			continue
		}
		unmet = append(unmet, r.At(violation.ReasonConstraintUnmet, fmt.Sprintf("spec.constraints[%d].uniqueInScope", i)).Because(
			fmt.Sprintf("Delete one of the two; %s stays as it is.", others[at]),
			"the package may be installed once in its %s, and %s is installed", within(scope, own), others[at]))
	}
	return unmet
}

func within(scope manifestsv1alpha1.UniqueScope, own Other) string {
	switch {
	case scope == manifestsv1alpha1.UniqueScopeCluster:
		return "cluster"
	case own.Namespace == "":
		return "cluster as a ClusterPackage"
	}
	return "namespace"
}

// String names the installation in messages.
func (o Other) String() string {
	return corev1alpha1.ScopeOf(o.Namespace).Kind("Package") + " " + strings.TrimPrefix(o.Namespace+"/"+o.Name, "/")
}
