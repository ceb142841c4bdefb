// Package cli is kubectl-package, the command line for authors and users of
// packages.
//
//	folder ─► validate, tree, build ─► image ─► install ─► status ─► delete
//
// Commands are thin: they read flags, call package loader, or package cluster
// for what is in the cluster and package progress for what that means, and
// print. Everything that is not theirs goes through package terminal.
//
// Data goes to standard output, everything else to standard error. Exit codes: 0
// for success, 1 for everything else; errors begin with "Error: ", wrong usage
// with "Error: arguments invalid: ". The commands and their output are described
// in docs/cli.md.
package cli
