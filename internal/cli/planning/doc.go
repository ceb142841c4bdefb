// Package planning holds the command plan, and the plans that other commands show.
//
//	flags ─► Planner.Load ─► Planned ─► dryrun ─► Text
//
// A package is loaded as the manager would load it. Package dryrun decides what happens to its
// objects.
package planning
