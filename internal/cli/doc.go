// Package cli is kubectl-package, the command line for authors and users of packages.
//
//	author      init, kickstart ─► folder ─► validate, lint, render, inspect, test, build ─► image; repository
//	planning    plan, rbac
//	install     install, upgrade, list, delete
//	operate     status, explain, deps, rollout, pause, retry
//	catalogue   repo, available, bundle
//	migrate     import, adopt, release
//
// Each of these has the commands for one purpose. They build on command (flags, connection,
// waiting), content (folders and images) and desired (the desired Package). They do not import each
// other, except for planning, and for author, which migrate imports. This package builds the root
// command.
//
// Data is written to standard output, everything else to standard error. The exit code is 0 for
// success and 1 for errors. Errors start with "Error: ", and errors of usage with "Error: arguments
// invalid: ". docs/cli.md describes the commands and their output.
package cli
