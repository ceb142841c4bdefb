// Package config admits the configuration of a Package against the schema in
// the package's manifest, as an API server admits a custom resource: defaults,
// validation, and the CEL rules of x-kubernetes-validations.
//
// A schema has to be structural. What it does not know of is returned by path,
// for the caller to refuse or to drop.
//
// Limits: limits.ConfigBytes, and the CEL costs of API servers.
package config
