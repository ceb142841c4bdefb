// Package planning holds plan, and what other commands show of what they would do.
//
//	flags ─► Planner.Load ─► Planned ─► dryrun ─► Text
//
// A package is loaded as the manager would load it; package dryrun decides what happens to its objects.
package planning
