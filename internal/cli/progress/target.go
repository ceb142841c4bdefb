package progress

import (
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// Target names a Package or ClusterPackage.
type Target struct {
	Scope corev1alpha1.Scope
	// Namespace is empty for a ClusterPackage.
	Namespace, Name string
}

// Kind is Package or ClusterPackage.
func (t Target) Kind() string { return t.Scope.Kind("Package") }

// Arg is the target as commands take it, such as clusterpackage/cert.
func (t Target) Arg() string { return strings.ToLower(t.Kind()) + "/" + t.Name }

// Flags are the arguments that select the target.
func (t Target) Flags() string {
	if t.Namespace == "" {
		return t.Arg()
	}
	return t.Arg() + " -n " + t.Namespace
}

// String is such as "package shop/web" and "clusterpackage cert".
func (t Target) String() string {
	if t.Namespace == "" {
		return strings.ToLower(t.Kind()) + " " + t.Name
	}
	return strings.ToLower(t.Kind()) + " " + t.Namespace + "/" + t.Name
}
