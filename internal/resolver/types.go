package resolver

import (
	"cmp"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/versions"
)

// Instance identifies a Package or, if it has no namespace, a ClusterPackage.
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

// Installed is an existing Package or ClusterPackage.
type Installed struct {
	Instance
	// Package is the name that others use to depend on it; empty if unknown.
	Package string
	// Version is the version that it should have; empty if unknown.
	Version  string
	Provides []corev1alpha1.ProvidedAPI
	Unique   corev1alpha1.UniqueScope
	// Requirements are recorded in its status, with their satisfiers.
	Requirements []Requirement
	// Unloaded means that Requirements and Provides are unknown; the values in the offer of its
	// version replace them.
	Unloaded bool
	// Generated means that it was created for others. Changeable means that its version can be
	// raised for the dependents it heeds.
	Generated, Changeable bool
	// API must be provided by every version that it can change to; nil if it was not installed for
	// an API.
	API *corev1alpha1.ProvidedAPI
	// AllDependents means that a ClusterPackage also heeds Packages of namespaces.
	AllDependents bool
	// Available means that its Version is rolled out.
	Available, Deleting bool
	// Tentative means that it was created for others and was never available. A solution does not
	// depend on it: the instance to be created of its package in its namespace takes its place, in
	// any version.
	Tentative bool
}

// Heeds reports whether the requirements of a dependent count for an instance: they limit its
// versions, and hold its deletion. A dependent counts only in its own namespace; ClusterPackages
// count for ClusterPackages.
func (i *Installed) Heeds(dependent Instance) bool {
	return i.Namespace == dependent.Namespace || i.Namespace == "" && i.AllDependents
}

// MayChange reports whether the version of an instance can be raised for a dependent.
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
}

// Catalogue is the read-only view of the offers. The order of its answers does not matter.
type Catalogue interface {
	// Offers returns the versions of a package that a namespace sees. Without a namespace, it
	// returns those that ClusterPackages see.
	Offers(namespace, name string) []Offer
	// Providers returns the names of packages with a version that provides an API.
	Providers(namespace string, api corev1alpha1.ProvidedAPI) []string
}

// Served reports whether the cluster serves an API, and which of its field paths are missing from
// the schema.
type Served func(api *corev1alpha1.DependencyAPI) (served bool, missing []string)

// Root is a package whose requirements are resolved. It is already installed, or about to be.
type Root struct {
	Instance
	// Package and Version are the ones to roll out.
	Package, Version string
	// Dependencies have the root's overrides applied, and exclude the form image.
	Dependencies []corev1alpha1.Dependency
	Unique       corev1alpha1.UniqueScope
	// UserManaged means that no package is installed or changed for the root.
	UserManaged bool
	// Versions are the possible versions of the root, starting with the preferred one, if its
	// version is resolved as well. They replace Version, Dependencies and Unique.
	Versions []RootVersion
	// optional means that the root can also stay as it is installed. Versions are set then.
	optional bool
}

// RootVersion is a version that a root can have.
type RootVersion struct {
	Version      string
	Dependencies []corev1alpha1.Dependency
	Unique       corev1alpha1.UniqueScope
}

// staysAt reports whether a value of a root is its installed version.
func (r *Root) staysAt(v int32) bool { return r != nil && r.optional && int(v) == len(r.Versions) }

// at returns the root limited to one of its versions.
func (r *Root) at(v int) *Root {
	only := *r
	if len(r.Versions) > 0 {
		only.Version, only.Dependencies, only.Unique, only.Versions = r.Versions[v].Version, r.Versions[v].Dependencies, r.Versions[v].Unique, nil
	}
	return &only
}

// all returns the root once for each of its versions.
func (r *Root) all() []*Root {
	all := make([]*Root, max(len(r.Versions), 1))
	for v := range all {
		all[v] = r.at(v)
	}
	return all
}

// Input is the input of a resolution.
type Input struct {
	Roots []Root
	// Installed are all instances.
	Installed []Installed
	Catalogue Catalogue
	// Served is nil if no API is served.
	Served   Served
	Platform versions.Platform
	// Steps bounds the work; 0 means the default limit, see New.
	Steps int
}

// Step creates or changes an instance. For a tentative instance that already has the version, it is
// a change to the same version.
type Step struct {
	Instance
	// Create is false if the version of an existing instance changes.
	Create bool
	// From is the version before a change.
	Package, Version, From string
	// Needs are the requirements that it satisfies. The first is the requirement of the dependent
	// that it is named after. Requirements in the plan come before requirements of installed
	// packages that stay.
	Needs []Need
	// For is the first root in the walk that leads to the created package.
	For Instance
}

// Need is a requirement of a dependent.
type Need struct {
	Dependent  Instance
	Dependency corev1alpha1.Dependency
}

// Outcome is the outcome of one requirement of a root.
type Outcome struct {
	Dependency corev1alpha1.Dependency
	// Satisfied means that the dependent does not have to wait.
	Satisfied bool
	// Failed means that the requirement cannot be satisfied by waiting.
	Failed bool
	// Reason and Message belong to the condition Satisfied.
	Reason, Message string
	// Satisfier is nil if there is none. Version is its present or future version.
	Satisfier *Instance
	Version   string
}

// Result is the result for a root.
type Result struct {
	Instance
	// Version is the version of the root.
	Version string
	// Outcomes follow the order of the root's dependencies.
	Outcomes []Outcome
	// Ready, Reason and Message belong to the condition DependenciesReady.
	Ready           bool
	Reason, Message string
}

// Plan is the result of a resolution.
type Plan struct {
	// Steps are in order: each comes after those that it depends on.
	Steps []Step
	// Results are ordered by namespace and name of the roots.
	Results []Result
	// Awaited are the packages by name, and the APIs as "apiVersion kind", that the result depends
	// on, sorted.
	Awaited []string
}

// KeyOf returns the form of an API in Plan.Awaited.
func KeyOf(apiVersion, kind string) string { return apiVersion + " " + kind }
