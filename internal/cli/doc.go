// Package cli is kubectl-package, the command line for authors and users of packages.
//
//	author      init, kickstart ─► folder ─► validate, lint, render, inspect, test, build ─► image; repository
//	planning    plan, rbac
//	install     install, upgrade, list, delete
//	operate     status, explain, deps, rollout, pause, retry
//	catalogue   repo, available, bundle
//	migrate     import, adopt, release
//
// Each of these has the commands for one purpose. They stand on command (flags, connection, waiting), content (folders and
// images) and desired (the Package that is wanted), and import none of each other but for planning, and author by migrate.
// This package builds the root of them.
//
// Data goes to standard output, everything else to standard error. The exit code is 0 for
// success and 1 for errors, which begin with "Error: ", those of usage with
// "Error: arguments invalid: ". docs/cli.md describes the commands and their output.
package cli
