// Package dependencies decides which packages are installed, changed and awaited for the
// dependencies of a Package, and which ones the deletion of a Package waits for.
//
//	Known, at one moment ─► Decide: resolver ─► Plan ─► the controller takes its steps ─► Report, on the status
//	        ▲                                    │
//	        └── Decisions: what others are about to write counts as written
//
// It writes nothing. What a decision reads beside Known, as offers and versions, it reads by functions of its Input.
//
//	decide.go     one Package together with those whose dependencies are open, or may move
//	known.go      the Packages that matter, and whether a plan still fits them
//	plan.go       a plan, and how the status shows it
//	generated.go  what a Package may do to packages that were installed for others
//	marks.go      the names and ranges of dependents, for people
//	dependents.go who depends on a package, and who holds its teardown
package dependencies
