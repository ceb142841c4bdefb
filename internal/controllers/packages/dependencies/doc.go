// Package dependencies decides which packages are installed, changed and awaited for the
// dependencies of a Package, and which ones the deletion of a Package waits for.
//
//	Known, at one moment ─► Decide: resolver ─► Plan ─► the controller takes its steps ─► Report, on the status
//	        ▲                                    │
//	        └── Decisions: what others are about to write counts as written
//
// It writes nothing. Packages are read through an interface of its Ledger, and the other input of a decision besides Known, such as offers and versions,
// by functions of its Input.
//
// The Ledger has all of who waits for what, in the order of one resolution:
//
//	Open     changes are kept from now on
//	Survey   the Packages at one moment, with the decisions of others
//	Note     the names that it was resolved by; a change of one of them, since Open or later, enqueues the Package
//	Commit   the decision counts for others, until it is written
//	Changed  a package, an offer or a kind is another one now (changes.go)
//	Drop     the Package is deleted
//
//	ledger.go     these
//	changes.go    which names a change of a Package, an offer or a kind is about
//	decide.go     one Package together with those whose dependencies are open, or may move
//	known.go      the Packages that matter, and whether a plan still fits them
//	plan.go       a plan, and how the status shows it
//	generated.go  what a Package may do to packages that were installed for others
//	marks.go      the names and ranges of dependents, for people
//	dependents.go who depends on a package, and who holds its teardown
package dependencies
