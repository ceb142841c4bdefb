// Package manifest reads and checks manifest.yaml (PackageManifest) and
// manifest.lock.yaml (PackageManifestLock).
//
// Every problem is reported at once, with line and field. An unknown field is an
// error if the manifest states spec.version; else it is dropped with a warning, as
// Package Operator does. Numbers and booleans without quotes are text where text is
// required.
//
// Limits: limits.ManifestBytes, PackagePhases, Expressions, and those of package
// document.
package manifest
