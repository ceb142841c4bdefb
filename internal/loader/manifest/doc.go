// Package manifest reads and checks manifest.yaml (PackageManifest) and manifest.lock.yaml
// (PackageManifestLock). It reports every problem at once, with line and field. An unknown field is
// an error if the manifest states spec.version; otherwise it is a warning.
//
// [Read] decodes both files and checks them against each other. Its [Result] then answers what
// package loader needs in the order of a load: [Result.Unmet] and [Result.NotUnique] for the
// cluster, [Result.Images] for templates, [Result.SecretByItsSchema] for values of Secrets.
// [Result.At] gives every later problem of the manifest its line.
package manifest
