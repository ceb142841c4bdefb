package resolver

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
	// Unloaded means that Requirements and Provides are not known yet; those of the offer of its version take their place.
	Unloaded bool
	// Generated means that it was created for others; Changeable that its version may be raised for those that it heeds.
	Generated, Changeable bool
	// API that the versions have to provide to which it may be changed; nil if it was not installed for one.
	API *corev1alpha1.ProvidedAPI
	// AllDependents means that a ClusterPackage heeds Packages of namespaces, too.
	AllDependents bool
	// Available means that it is rolled out in its Version.
	Available, Deleting bool
	// Tentative means that it was created for others, and was never available: a solution
	// does not depend on it. The instance to be created of its package in its namespace
	// takes its place, in any version.
	Tentative bool
}

// Heeds reports whether what a dependent requires counts for an instance: it limits which versions the instance may have, and
// holds its deletion. A dependent counts in its own namespace alone, ClusterPackages count for ClusterPackages.
func (i *Installed) Heeds(dependent Instance) bool {
	return i.Namespace == dependent.Namespace || i.Namespace == "" && i.AllDependents
}

// MayChange reports whether the version of an instance may be raised for a dependent.
func (i *Installed) MayChange(dependent Instance) bool { return i.Changeable && i.Heeds(dependent) }

// Requirement is a recorded requirement.
type Requirement struct {
	corev1alpha1.Dependency
	// Satisfier is nil if none is recorded.
	Satisfier *Instance
}

// Offer is a version that repositories offer.
type Offer struct {
	versions.Candidate
	Dependencies []corev1alpha1.Dependency
	Unique       corev1alpha1.UniqueScope
	// Scopes in which it may be installed; empty means all.
	Scopes []corev1alpha1.Scope
}

// Catalogue is what repositories offer, for reading only. The order of its answers does not matter.
type Catalogue interface {
	// Offers returns the versions of a package that a namespace sees, and without one those that ClusterPackages see.
	Offers(namespace, name string) []Offer
	// Providers returns the names of packages of which a version there provides an API.
	Providers(namespace string, api corev1alpha1.ProvidedAPI) []string
}

// Served reports whether the cluster serves an API, and which of its field paths are not in the schema.
type Served func(api *corev1alpha1.DependencyAPI) (served bool, missing []string)

// Root is a package whose requirements are resolved. It is among the installed ones as well, or about to be.
type Root struct {
	Instance
	// Package and Version are those to be rolled out.
	Package, Version string
	// Dependencies with the overrides of the root applied, the form image left out.
	Dependencies []corev1alpha1.Dependency
	Unique       corev1alpha1.UniqueScope
	// UserManaged means that nothing is installed or changed for it.
	UserManaged bool
	// Versions are those that it may have, the preferred one first, if that is to be resolved, too. They take the place of
	// Version, Dependencies and Unique.
	Versions []RootVersion
	// optional means that it may also stay as it is installed. Versions are there then.
	optional bool
}

// RootVersion is a version that a root may have.
type RootVersion struct {
	Version      string
	Dependencies []corev1alpha1.Dependency
	Unique       corev1alpha1.UniqueScope
}

// staysAt reports whether a value of a root is its installed version.
func (r *Root) staysAt(v int32) bool { return r != nil && r.optional && int(v) == len(r.Versions) }

// at returns the root in one of its versions alone.
func (r *Root) at(v int) *Root {
	only := *r
	if len(r.Versions) > 0 {
		only.Version, only.Dependencies, only.Unique, only.Versions = r.Versions[v].Version, r.Versions[v].Dependencies, r.Versions[v].Unique, nil
	}
	return &only
}

// all returns the root in each of the versions that it may have.
func (r *Root) all() []*Root {
	all := make([]*Root, max(len(r.Versions), 1))
	for v := range all {
		all[v] = r.at(v)
	}
	return all
}

// Input of a resolution.
type Input struct {
	Roots []Root
	// Installed are all instances.
	Installed []Installed
	Catalogue Catalogue
	// Served is nil if no API is served.
	Served   Served
	Platform versions.Platform
	// Steps bounds the work; 0 means the limit of the roots, see New.
	Steps int
}

// Step is a creation or a change of an instance. A tentative instance that has its
// version already is a change from that to that.
type Step struct {
	Instance
	// Create is false where the version of an existing instance is changed.
	Create bool
	// From is the version before a change.
	Package, Version, From string
	// Needs are the requirements that it satisfies. That of the dependent whose name it has
	// comes first, and those of the plan before those of installed packages that stay.
	Needs []Need
	// Message explains why it is this version.
	Message string
	// For is the root that leads to the created package, the first one in the walk.
	For Instance
	// After are the instances that it depends on, sorted.
	After []Instance
}

// Need is a requirement of a dependent.
type Need struct {
	Dependent  Instance
	Dependency corev1alpha1.Dependency
}

// Outcome is what became of one requirement of a root.
type Outcome struct {
	Dependency corev1alpha1.Dependency
	// Satisfied means that nothing has to be waited for.
	Satisfied bool
	// Failed means that waiting does not help: the requirement cannot be satisfied.
	Failed bool
	// Reason and Message of the condition Satisfied.
	Reason, Message string
	// Satisfier is nil for none; Version is the one that it has, or is to have.
	Satisfier *Instance
	Version   string
}

// Result is what became of a root.
type Result struct {
	Instance
	// Version is the one of the root.
	Version string
	// Outcomes in the order of the dependencies of the root.
	Outcomes []Outcome
	// Ready, Reason and Message of the condition DependenciesReady.
	Ready           bool
	Reason, Message string
}

// Plan is the result of a resolution.
type Plan struct {
	// Steps in their order: each after those that it depends on.
	Steps []Step
	// Results by namespace and name of the roots.
	Results []Result
	// Awaited are the names of packages, and APIs as "apiVersion kind", on which the result depends, sorted.
	Awaited []string
}

// KeyOf returns the form of an API in Plan.Awaited.
func KeyOf(apiVersion, kind string) string { return apiVersion + " " + kind }
