// Package cli is kubectl-package, the command line for authors and users of packages.
//
//	init, kickstart ─► folder ─► validate, test, lint, render, explain, build ─► image ─► plan, install ─► status ─► delete
//
// Commands read flags, call the packages below author, dryrun and diagnose, or cluster and
// progress, and print through package terminal.
//
// Data goes to standard output, everything else to standard error. The exit code is 0 for
// success and 1 for errors, which begin with "Error: ", those of usage with
// "Error: arguments invalid: ". docs/cli.md describes the commands and their output.
package cli
