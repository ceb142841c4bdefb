// Package loader turns the files of a package into what an ObjectDeployment rolls
// out: checked objects in phases, probes and labels.
//
//	image or folder ─► files (archive, registry)
//	   ─► manifest and lock ─► constraints ─► config ─► path rules ─► templates
//	   ─► documents ─► condition annotations ─► patches ─► common metadata
//	   ─► checks ─► phases
//
// Sensitive values of Secrets are allowed in Secrets only, and redacted in messages.
//
// Loading is pure but for the pull and deterministic. Every problem is a violation
// with file, document, line and field, and as many as possible are reported at once.
// What Package Operator accepts is a warning where the package states no
// spec.version, and a problem otherwise.
//
// Objects are JSON with sorted keys and the labels of package and instance; those of
// version and provider are in Package.Labels only, as the engine sets them.
//
// The rules are those of Package Operator, but for what docs/compatibility.md lists.
package loader
