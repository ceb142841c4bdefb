// Package manifest reads and checks the two files that describe a package:
// manifest.yaml (PackageManifest) and manifest.lock.yaml (PackageManifestLock).
//
// Every problem is reported at once, each with its line and field. A field that
// the format does not know is an error where the manifest states spec.version; else
// it is dropped, as Package Operator does, and a warning names it. Text that was written without quotes and reads as a
// number or a boolean is taken as the text that stands in the file.
//
// Limits: limits.ManifestBytes, PackagePhases, Expressions, and those of
// package document.
package manifest
