// Package manifest reads and checks manifest.yaml (PackageManifest) and manifest.lock.yaml
// (PackageManifestLock). It reports every problem at once, with line and field. An unknown field is
// an error if the manifest states spec.version; otherwise it is a warning.
package manifest
