// Package resolver decides which packages have to be installed, or changed, to satisfy the
// dependencies of others. It is pure: wishes, installed packages and offers in; a plan, or
// an explanation why there is none, out.
//
//	roots ─► requirements ─► slots (who may satisfy them) ─► search ─► steps, dependencies first, and outcomes
//
// A requirement of a Package in a namespace is satisfied by a Package there, or by a
// ClusterPackage, in this order; that of a ClusterPackage by a ClusterPackage. Only where
// none is installed a new one is created, in the scope of the dependent. Several
// requirements of one dependent on one package have an instance each; all others share one.
//
// The requirements of a package count for those that heed it (Installed.Heeds): in its
// namespace, or among ClusterPackages. It neither changes others nor limits which versions
// these may have. Uniqueness is within the same scope.
//
// A solution satisfies all requirements of the roots and of the packages that are created
// or changed for them, breaks no requirement of an installed package that stays, respects
// uniqueInScope, and has no cycle. Of all solutions the first in this order is taken:
//
//  1. Roots whose version is to be resolved, too, by namespace and name: each has the first
//     one in its own order of preference.
//  2. Installed packages that may be changed, by namespace and name: each stays at its
//     version, or else takes the lowest version above it. It is never taken lower.
//  3. Created packages, in the order in which a walk meets them: breadth first from the
//     roots, by namespace and name, each with its requirements by name. Each takes the
//     highest version.
//  4. Optional requirements, in the order of the walk: each is satisfied where the choices
//     before it leave a way. It changes none of them, and fails nothing.
//
// Each choice is the most preferred one with which there is a solution, given the choices
// before it. So the plan depends on the input alone, and not on its order. Only packages
// that a root leads to are changed.
//
// A tentative package, which was created for others and never available, is not a part of the
// input of these choices: the one to be created takes its place, in a lower version, too.
//
// A requirement of an API that is not served is one of the package that provides it: of
// those installed, or else of those offered, the only one, or the only one on which the
// dependent is anyway. Of an installed package that stays, requirements count that are
// satisfied and not optional: a broken one holds up nothing else.
//
// Roots fail one by one: if there is no solution for all of them, those whose
// requirements are satisfied already are taken first, and then the others by namespace and
// name, each if there is a solution with those before it, and with some of those behind it
// or none; these stay as they are installed otherwise. Nothing is created for a root that
// fails. Packages that can only move together, such as two that require one version of a
// third, have to be roots of one resolution.
//
// The search learns from conflicts (CDCL over versions, each expanded when it is chosen
// first). All work counts as steps: reads of the catalogue and of installed packages, the
// closure of those that may be changed, searches and explanations. limits.ResolutionSteps,
// or for a root of a namespace limits.ResolutionStepsNamespaced, bounds them;
// resolutionMessages the lines of an explanation.
package resolver
