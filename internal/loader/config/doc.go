// Package config admits the configuration of a Package against the structural schema in its
// manifest, as an API server admits a custom resource: defaults, validation, CEL rules. It returns
// unknown keys by path, and the caller rejects or drops them. Costs are the same as in API servers.
package config
