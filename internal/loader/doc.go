// Package loader turns the files of a package into what an ObjectDeployment
// rolls out: checked objects in phases, probes and labels.
//
//	image or folder ─► files (archive, registry)
//	   ─► manifest and lock ─► constraints ─► config ─► path rules ─► templates
//	   ─► documents ─► condition annotations ─► patches ─► common metadata
//	   ─► checks ─► phases
//
// Values that came from sensitive Secrets are let into Secrets only, and taken
// out of every message (package sensitive).
//
// Loading is pure but for the pull: the same files, options and environment
// give the same bytes. Every problem is a violation with file, document, line
// and field, and as many as possible are reported at once; nothing of a
// package with a problem is used. What Package Operator accepts is a warning
// where the package states no spec.version, and a problem otherwise.
//
// Objects are JSON with sorted keys. They carry the labels of the package and
// the instance; those of version and provider are in Package.Labels only, as
// the engine sets them when it applies.
//
// The rules are those of Package Operator, but for what docs/compatibility.md lists.
package loader
