// Package dependencies decides which packages are installed, changed and awaited for the
// dependencies of a Package, and which packages the deletion of a Package waits for.
//
//	Known, at one moment ─► Decide: resolver ─► Plan ─► the controller takes its steps ─► Report, on the status
//	        ▲                                    │
//	        └── Decisions: pending writes of others are treated as written
//
// It does not write. It reads Packages through an interface of its Ledger. The other input of
// a decision besides Known, such as offers and versions, comes from functions of its Input.
//
// The Ledger records which Packages wait for which others, in the order of one resolution:
//
//	Open     changes are kept from now on
//	Survey   the Packages at one moment, with the decisions of others
//	Note     the names that it was resolved by; a change of one of them, since Open or later, enqueues the Package
//	Commit   others take the decision into account until it is written
//	Changed  a package, an offer or a kind has changed (changes.go)
//	Drop     the Package is deleted
//
//	ledger.go     these
//	changes.go    the names that a change of a Package, an offer or a kind affects
//	decide.go     one Package together with others whose dependencies are open, or that can move
//	known.go      the Packages that matter, and whether a plan still fits them
//	plan.go       a plan, and how the status shows it
//	generated.go  what a Package can do to packages that were installed for others
//	marks.go      the names of dependents, for people
//	dependents.go the dependents of a package, and which of them hold its teardown
package dependencies
