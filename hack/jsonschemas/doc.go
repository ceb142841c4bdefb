// Jsonschemas writes the JSON Schemas of the file kinds, for editors: of
// PackageManifest, PackageManifestLock, Repository and RepositoryEntry. It reads
// what controller-gen makes of the types, as definitions for an API server, from
// standard input, and turns the schemas in them into strict ones of draft 7.
//
//	controller-gen crd paths=./apis/manifests/... output:crd:stdout | go run ./hack/jsonschemas --out docs/schemas
//
// The schema of a package's configuration is described by that of Kubernetes for
// definitions, which is bundled.
package main
