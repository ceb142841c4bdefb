// Package install holds the commands that install packages and that follow them until they are
// deleted.
//
//	flags ─► desired.Package ─► checks ─► values, Package ─► command.Waiter
//
// All checks precede the first write. list shows the state of all packages by package progress, and
// delete names the losses before it asks.
package install
