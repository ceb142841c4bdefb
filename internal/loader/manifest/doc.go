// Package manifest reads and checks manifest.yaml (PackageManifest) and manifest.lock.yaml (PackageManifestLock). Every
// problem is reported at once, with line and field. An unknown field is an error if the manifest states spec.version,
// else a warning.
package manifest
