// Package cli is kubectl-package, the command line for authors and users of
// packages.
//
//	init, kickstart ─► folder ─► validate, test, lint, render, explain, build ─► image ─► plan, install ─► status ─► delete
//
// Commands are thin: they read flags, call package loader and what builds on it
// (conformance, packagetest, lint, scaffold), or package cluster
// for what is in the cluster and package progress for what that means, and
// print. Everything that is not theirs goes through package terminal.
//
// Data goes to standard output, everything else to standard error. Exit codes: 0
// for success, 1 for everything else; errors begin with "Error: ", wrong usage
// with "Error: arguments invalid: ". The commands and their output are described
// in docs/cli.md.
package cli
