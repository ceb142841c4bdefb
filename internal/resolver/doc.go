// Package resolver decides which packages to install or change to satisfy the dependencies of
// others. It is pure: it takes wishes, installed packages and offers, and returns a plan or an
// explanation why there is none.
//
//	roots ─► requirements ─► slots (who may satisfy them) ─► search ─► steps, dependencies first, and outcomes
//
// A requirement of a Package in a namespace is satisfied by a Package there or else by a
// ClusterPackage. A requirement of a ClusterPackage is satisfied by a ClusterPackage. A new one is
// created only if none is installed, in the scope of the dependent. If a dependent has several
// requirements on one package, each gets its own instance; all other requirements share one.
//
// The requirements of a package count for instances that heed it (Installed.Heeds), in its
// namespace or among ClusterPackages. It neither changes other instances nor limits their versions.
// Uniqueness applies within the same scope.
//
// A solution satisfies all requirements of the roots and of the packages that are created or
// changed for them. It breaks no requirement of an installed package that stays, respects
// uniqueInScope, and has no cycle. If there are several solutions, the first in this order wins:
//
//  1. Roots with a version to resolve, by namespace and name: each gets the first possible version
//     in its own order of preference.
//  2. Installed packages that can be changed, by namespace and name: each keeps its version, or
//     else gets the lowest version above it. A package is never downgraded.
//  3. Created packages, in the order of a breadth-first walk from the roots, by namespace and name,
//     that follows the requirements of each package by name. Each gets the highest version.
//  4. Optional requirements, in the order of the walk: each is satisfied if the earlier choices
//     permit it. It does not change these, and its failure does not affect others.
//
// Each choice is the most preferred one that still has a solution, given the choices before it. The
// plan therefore depends on the input alone, and not on its order. Only packages that a root leads
// to are changed.
//
// A tentative package was created for others and has never been available. It does not influence
// these choices: the package to be created takes its place, even in a lower version.
//
// A requirement of an API that is not served becomes a requirement of the package that provides it.
// Installed providers come before offered ones. There has to be only one, or only one that the
// dependent requires anyway. For installed packages that stay, only satisfied, mandatory
// requirements count, so that a broken one does not hold up anything else.
//
// Roots fail one by one. If there is no solution for all of them, those whose requirements are
// already satisfied come first, and then the others by namespace and name. A root is accepted if
// there is a solution for it and the roots accepted before it, with any subset of the roots after
// it; the rest of these stay as they are installed. No package is created for a root that fails.
// Packages that can only move together, such as two that require one version of a third, have to be
// roots of one resolution.
//
// The search learns from conflicts (CDCL over versions; a version is expanded when it is first
// chosen). All work is measured in steps: reads of the catalogue and of installed packages, the
// closure of the changeable ones, searches and explanations. limits.ResolutionSteps, or
// limits.ResolutionStepsNamespaced for a root in a namespace, bounds them. resolutionMessages
// bounds the lines of an explanation.
package resolver
