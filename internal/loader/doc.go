// Package loader turns the files of a package into the content of an ObjectDeployment: checked
// objects in phases, probes and labels.
//
//	image or folder ─► files (archive, registry)
//	   ─► manifest and lock ─► constraints ─► config ─► path rules ─► templates
//	   ─► documents ─► condition annotations ─► patches ─► common metadata
//	   ─► checks ─► phases
//
// Except for the pull, loading is pure and deterministic. Every problem is a violation with file,
// document, line and field, and as many as possible are reported at once. Input that only Package
// Operator accepts is a warning if the package states no spec.version. Sensitive values are allowed
// only in Secrets.
//
// The rules equal Package Operator's, except for the differences in docs/compatibility.md.
//
// The manager calls [Load] for each Package, and the command line calls [Preview] and [Validate].
// They differ only in [Options]: for example, without an Environment no constraint is evaluated.
// load.run has the order of the steps above; each sub-package does one of them.
package loader
