// Package dependencies decides which packages have to be installed, or changed, for what one package depends on.
//
//	requirements of the root ─► options of each, in order of preference ─► Plan: steps and outcomes
//
// A requirement is satisfied by what is installed where that fits: a recorded satisfier, a Package of the namespace, a
// ClusterPackage, and a package of another namespace that is unique in the cluster. A package that was generated, or whose
// user consents, is otherwise moved to the lowest version above its own that all its dependents accept; never to a lower
// one. Else the highest version that fits is installed. Requirements are decided breadth first, in the order of manifests;
// where a later one cannot be satisfied, the search goes back to the choices before it.
//
// An optional requirement that cannot be satisfied is left out. Of a root with any other unsatisfied requirement there are
// outcomes and no steps. The search ends after limits.DependencySteps. All functions are pure.
package dependencies
