package dependencies

import (
	"cmp"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/versions"
)

// Instance identifies a Package, or without a namespace a ClusterPackage.
type Instance struct{ Namespace, Name string }

// String returns kind, namespace and name.
func (i Instance) String() string {
	if i.Namespace == "" {
		return "ClusterPackage " + i.Name
	}
	return "Package " + i.Namespace + "/" + i.Name
}

// Compare orders instances by namespace and name.
func (i Instance) Compare(o Instance) int {
	return cmp.Or(cmp.Compare(i.Namespace, o.Namespace), cmp.Compare(i.Name, o.Name))
}

// Reference returns the reference to the instance in a status.
func (i Instance) Reference() *corev1alpha1.DependencyReference {
	return &corev1alpha1.DependencyReference{
		Kind: corev1alpha1.ScopeOf(i.Namespace).Kind("Package"), Namespace: i.Namespace, Name: i.Name,
	}
}

// Installed is a Package or ClusterPackage that exists.
type Installed struct {
	Instance
	// Package is the name by which others depend on it; empty while that is not known.
	Package string
	// Version is the one that it is to have; empty while that is not known.
	Version  string
	Provides []corev1alpha1.ProvidedAPI
	Unique   corev1alpha1.UniqueScope
	// Requirements that were recorded in its status, with what satisfies them.
	Requirements []Requirement
	// Generated means that it was created for others; Changeable that its version may be changed for them.
	Generated, Changeable bool
	// Available means that it is rolled out in its Version.
	Available, Deleting bool
}

// Requirement is a recorded requirement.
type Requirement struct {
	corev1alpha1.Dependency
	// Satisfier is nil where none is recorded.
	Satisfier *Instance
}

// Offer is a version that repositories offer.
type Offer struct {
	versions.Candidate
	Dependencies []corev1alpha1.Dependency
	Provides     []corev1alpha1.ProvidedAPI
	Unique       corev1alpha1.UniqueScope
	// Scopes in which it may be installed; empty means all.
	Scopes []corev1alpha1.Scope
}

// Catalogue is what repositories offer to the namespace of the root, for reading only.
type Catalogue interface {
	// Offers returns the versions of a package.
	Offers(name string) []Offer
	// Providers returns the names of packages of which a version provides an API, sorted.
	Providers(api corev1alpha1.ProvidedAPI) []string
}

// Served reports whether the cluster serves an API, and which of its field paths are not in the schema.
type Served func(api *corev1alpha1.DependencyAPI) (served bool, missing []string)

// Input of a resolution.
type Input struct {
	// Root is the instance whose requirements are resolved, and Package its name.
	Root    Instance
	Package string
	// Dependencies of the root, with its overrides applied.
	Dependencies []corev1alpha1.Dependency
	// UserManaged means that nothing is installed or changed.
	UserManaged bool
	// Installed are all instances, those of the root included.
	Installed []Installed
	Catalogue Catalogue
	Served    Served
	Platform  versions.Platform
}

// Step is a creation or a change of an instance.
type Step struct {
	Instance
	// Create is false where the version of an existing instance is changed.
	Create           bool
	Package, Version string
	// Needs are the requirements of this plan that it satisfies, the one that led to it first.
	Needs []Need
}

// Need is a requirement of a dependent.
type Need struct {
	Dependent  Instance
	Dependency corev1alpha1.Dependency
}

// Outcome is what became of one requirement of the root.
type Outcome struct {
	Dependency corev1alpha1.Dependency
	// Satisfied means that nothing has to be waited for.
	Satisfied bool
	// Reason and Message of the condition Satisfied.
	Reason, Message string
	// Satisfier is nil for none; Version is its version.
	Satisfier *Instance
	Version   string
}

// Plan is the result of a resolution.
type Plan struct {
	// Steps in their order: a package after those that it depends on. Empty where a requirement cannot be satisfied.
	Steps []Step
	// Outcomes in the order of the dependencies.
	Outcomes []Outcome
	// Failed is the reason and text of the first requirement, not optional, that cannot be satisfied; nil for none.
	Failed *Failure
	// Awaited are the names of packages, and APIs as "apiVersion kind", that a failed requirement depends on, sorted.
	Awaited []string
}

// Failure is why a requirement cannot be satisfied.
type Failure struct{ Reason, Message string }

// Ready reports whether all requirements but optional ones are satisfied.
func (p *Plan) Ready() bool {
	for _, o := range p.Outcomes {
		if !o.Satisfied && !o.Dependency.Optional {
			return false
		}
	}
	return true
}

// KeyOf returns the form of an API in Plan.Awaited.
func KeyOf(apiVersion, kind string) string { return apiVersion + " " + kind }
