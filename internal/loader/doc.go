// Package loader turns the files of a package into what an ObjectDeployment rolls out: checked objects in phases, probes
// and labels.
//
//	image or folder ─► files (archive, registry)
//	   ─► manifest and lock ─► constraints ─► config ─► path rules ─► templates
//	   ─► documents ─► condition annotations ─► patches ─► common metadata
//	   ─► checks ─► phases
//
// Loading is pure but for the pull and deterministic. Every problem is a violation with file, document, line and field,
// as many as possible at once. What only Package Operator accepts is a warning where the package states no spec.version.
// Sensitive values are allowed in Secrets only.
//
// The rules are those of Package Operator, but for what docs/compatibility.md lists.
package loader
