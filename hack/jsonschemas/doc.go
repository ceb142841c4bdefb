// Jsonschemas writes the JSON Schemas of the file kinds, for editors: PackageManifest,
// PackageManifestLock, Repository and RepositoryEntry. It reads from standard input the definitions
// for an API server that controller-gen makes from the types, and turns their schemas into strict
// ones of draft 7.
//
//	controller-gen crd paths=./apis/manifests/... output:crd:stdout | go run ./hack/jsonschemas --out docs/schemas
//
// The schema of a package's configuration follows Kubernetes' own schema for definitions, which is
// bundled.
package main
